"""The descriptor of one kernel: how it computes its operation, independent of the device."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT32
from gemmlab.core.program import Config, Launch, Program
from gemmlab.core.words import assignments

if TYPE_CHECKING:
    # The library call needs this file, but not the modules behind expressions.
    from gemmlab.codegen.thread_division import ThreadDivision
    from gemmlab.kernels.claims import Expectation, Restriction

Bound = Mapping[str, Any]
"""The arguments of one execution by name, as NumPy scalars and device buffers: the operation's scalars and operands,
`threads`, `workspace` and `tickets`, and operands as `texture(a)` and `tensor_map(a)` (`names.py`).
"""
ALL_STEPS = "K"
"""`Kernel.steps` of kernels whose blocks do not share k: every block takes all steps along k."""
NO_MEMORY: Bound = {"workspace": None, "tickets": None}
"""Workspace and tickets of launches that are inspected but never run."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The facts about one kernel, stated by the file that defines it.

    `make_program(instance, target)` and `make_launches(instance, bound)` are pure. An instance is a configuration plus
    the compile-time parameters that the problem determines (`instantiate`).
    """

    id: str
    op: str
    device: str
    """The family of devices that the kernel runs on: `"cpu"`, or `"cuda"` (emulated GPUs, too)."""
    summary: str
    """A description of the kernel in one line."""
    idea: str
    """The reason that the kernel is faster than the rung it comes after, in one sentence."""
    source: str
    """The publication or project that the technique comes from."""
    params: Config
    args: tuple[str, ...]
    """The kernel's arguments in the order of its signature: of each its name in `Bound`, or the text of the expression
    that computes its value.
    """
    make_program: Callable[[Config, str], Program] = field(repr=False)
    path: Path
    after: str | None = None
    """Id of the rung that this one comes after, empty for the first rung; `None` for a kernel that is no rung."""
    branch: bool = False
    """True if the kernel is a side branch of the rung `after`: the ladder's main line continues without it."""
    step: int | None = None
    """The kernel's place on its ladder, from 1 on, which the catalog finds from `after`; `None` for a kernel that is no
    rung.
    """
    aliases: tuple[str, ...] = ()
    """Ids that the kernel had in earlier versions of gemmlab."""
    precision: str = FLOAT32
    """The precision of the kernel's results, one of `Op.precisions`: for float32 operands one of `core.precision`, for
    other operands the type in which sums are computed.
    """
    precisions: Mapping[int, str] = field(default_factory=dict)
    """Value of the parameter `PRODUCTS` -> the precision with it; `precision` holds for all other values."""
    unavailable: Callable[[], str] = field(default=lambda: "", repr=False)
    """Return the requirements of the kernel that this machine does not meet; empty if it meets all."""
    layouts: tuple[str, ...] = ("nn",)
    """Operand layouts that the kernel reads in place, such as `nt`: A as it is, B transposed. For others, operands are
    copied first.
    """
    tune: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Values that tuning tries, by parameter, in all combinations that are legal."""
    search: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Values by parameter, besides those of `tune`, that only a search within a budget tries."""
    meant: Callable[[Config], Config] = field(default=lambda config: config, repr=False)
    """Return a legal configuration with each 0 that stands for a value of this machine replaced by that value.
    Configurations for which the results are equal have the same code.
    """
    objection: Callable[[Config], str] = field(default=lambda _config: "", repr=False)
    """Return the constraint that a configuration breaks; empty for a legal one."""
    workspace_bytes: Callable[[Any, Config], int] = field(default=lambda _problem, _config: 0, repr=False)
    """Return the bytes of memory besides the operands for a problem and an instance."""
    zeroed_workspace: bool = False
    """True if the workspace must be zeros before its first use. Executions that share a workspace run one after
    another.
    """
    tickets: Callable[[Any, Config], int] = field(default=lambda _problem, _config: 0, repr=False)
    """Return the number of 32-bit words, for a problem and an instance, that are zero before and after each launch.
    With tickets, the initial contents of the workspace are undefined.
    """
    threaded: bool = False
    """True if the kernel can use more than one CPU thread."""
    divide: Callable[[Config, Any, int], ThreadDivision] | None = field(default=None, repr=False)
    """Function of a configuration, a problem and a number of threads that returns how at most that many threads divide
    the result; `None` if the division is unknown.
    """
    make_launches: Callable[[Config, Bound], list[Launch]] | None = field(default=None, repr=False)
    """Function of an instance and its arguments that returns the launches of one execution; `None` for a kernel that is
    executed by one call on `threads` CPU threads.
    """
    phased: bool = False
    """True if the file states `phases`: the launches of one execution do different work."""
    grid: tuple[str, ...] = ()
    """The grid of one launch in blocks, as one to three expressions of the kernel's file; empty for a CPU kernel."""
    steps: str = ALL_STEPS
    """The number of steps along k that a block takes, as an expression of the kernel's file."""
    tiles: tuple[str, ...] = ()
    """The number of blocks that take `steps` steps each, as expressions whose product it is: those of `grid` unless the
    file states `tiles`; empty for a CPU kernel.
    """
    from_problem: tuple[str, ...] = ()
    """Compile-time parameters that the problem determines, not the configuration: `TRANS_A`, `OPERATOR`."""
    roundings: Callable[[Config, Mapping[str, Any]], int | None] = field(default=lambda _i, _s: None, repr=False)
    """Return the most consecutive additions that a term goes through, from an instance and `Op.scalars`; `None` if the
    file does not state it.
    """
    in_order: Callable[[Config], bool] = field(default=lambda _config: False, repr=False)
    """Return whether each sum is one chain of multiply-adds in the order of k and the result
    `fma(beta, c, alpha * sum)`.
    """
    arch: str = ""
    """The lowest CUDA architecture that runs the kernel, `"sm_80"`. With `a`, `"sm_90a"`, it is the only one that does;
    with `f`, `"sm_100f"`, only later ones of its major version do, too. Empty if all do, and for a CPU kernel.
    """
    align: int = 4
    """Number of bytes of which the address of each operand must be a multiple; `restrictions` has the conditions on
    rows.
    """
    constants: Mapping[str, Callable[[Config, Mapping[str, Any]], Any]] = field(default_factory=dict, repr=False)
    """The values of `__constant__` variables by name: functions of an instance and `Op.scalars` that return an
    array.
    """
    always_reads: tuple[str, ...] = ()
    """Operands that the kernel reads even if their factor is 0; `restrictions` excludes problems with such a factor."""
    restrictions: tuple[Restriction, ...] = ()
    """Restrictions on the problem; empty for a kernel that takes any."""
    expect: tuple[Expectation, ...] = ()
    """Statements that the kernel's counters must meet."""
    untried: tuple[str, ...] = ()
    """Contents of operands, such as `special`, with which the kernel is not checked, because its exercise is not about
    them.
    """
    exercise: str = ""
    """Id of the rung whose exercise the kernel is to solve; empty if it is to solve none."""

    def configure(self, overrides: Mapping[str, int] | None = None) -> dict[str, int]:
        """Return the default configuration with `overrides`; `UsageError` for an unknown parameter or if the result is
        not legal.
        """
        config = dict(self.params)
        for name, value in (overrides or {}).items():
            if name not in config:
                known = ", ".join(config) or "none"
                raise UsageError(f"{self.id}: unknown parameter {name!r} (parameters: {known})")
            config[name] = value
        if why := self.objection(config):
            raise UsageError(f"{self.id}: {assignments(config)} breaks the kernel's constraints: {why}")
        return config

    def legal(self, config: Config) -> bool:
        """Return whether a configuration keeps the kernel's constraints."""
        return not self.objection(config)

    def precision_in(self, config: Config) -> str:
        """Return the precision of results in a configuration: that of `PRODUCTS` in `precisions`, else `precision`."""
        return self.precisions.get(config.get("PRODUCTS", 0), self.precision)

    def configurations(self) -> Iterator[dict[str, int]]:
        """Yield the default, then the legal configurations of `tune`, each with different code."""
        yield from self.among(self.tune)

    def among(self, ranges: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
        """Yield the default, then the legal configurations of these ranges of values, each with different code."""
        known = set[tuple[tuple[str, int], ...]]()
        for values in ((), *itertools.product(*ranges.values())):
            config = {**self.params, **dict(zip(ranges, values, strict=bool(values)))}
            if not values or self.legal(config):
                meant = tuple(sorted(self.meant(config).items()))
                if meant not in known:
                    known.add(meant)
                    yield config

    def refusals(self, config: Config, scalars: Mapping[str, Any]) -> list[str]:
        """Return all reasons why the kernel cannot compute a problem, given by `Op.scalars`; empty if it can."""
        instance = self.instantiate(config, scalars)
        broken = [r.explain() for r in self.restrictions if not r.admits(instance, scalars)]
        layout = "".join("t" if scalars.get(flag) else "n" for flag in ("trans_a", "trans_b"))
        return broken if layout in self.layouts else [_layout_words(layout, self.layouts), *broken]

    def refusal(self, config: Config, scalars: Mapping[str, Any]) -> str:
        """Return the first of `refusals`; empty if there is none."""
        return next(iter(self.refusals(config, scalars)), "")

    def instantiate(self, config: Config, scalars: Mapping[str, Any]) -> dict[str, int]:
        """Return `config` with the compile-time parameters that the problem determines (`from_problem`) added."""
        return {**config, **{name: int(scalars[name.lower()]) for name in self.from_problem}}

    def instances(self, config: Config) -> list[dict[str, int]]:
        """Return all instances to compile so that any problem can run in `config`: one for every layout that the kernel
        reads and every value of other compile-time flags.
        """
        from gemmlab.kernels.names import names_of

        values = names_of(self.op).flags if self.from_problem else {}
        found = []
        for layout in self.layouts:
            turned = {"TRANS_A": (int(layout[0] == "t"),), "TRANS_B": (int(layout[1] == "t"),)}
            for chosen in itertools.product(*(turned.get(n) or values[n.lower()] for n in self.from_problem)):
                instance = {**config, **dict(zip(self.from_problem, chosen, strict=True))}
                if instance not in found:
                    found.append(instance)
        return found

    def program(self, instance: Config, target: str) -> Program:
        """Return the program that a device builds to run this kernel.

        Raises `DeviceError` for a target on which the kernel does not run, and for a CPU kernel that is `unavailable`.
        """
        return self.make_program(instance, target)

    def launches(self, instance: Config, bound: Bound, threads: int = 1) -> list[Launch]:
        """Return the launches of one execution; none if there is nothing to compute.

        `bound` has all arguments by name; `threads` is for CPU kernels. Raises `UsageError` for a launch that is
        impossible.
        """
        if self.make_launches is not None:
            return self.make_launches(instance, bound)
        return [Launch(args=tuple(bound[name] for name in self.args), threads=(threads, 1, 1))]


def _layout_words(layout: str, read: Sequence[str]) -> str:
    return f"layout {' or '.join(read)} (it does not read layout {layout})"
