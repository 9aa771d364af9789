"""The arguments of `gemmlab.bench`, and the plan made from them: to time, or on an emulated device to count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any

from gemmlab.core.errors import UsageError
from gemmlab.dispatch.precision_rule import HIGHEST, REQUESTS
from gemmlab.instruments.defaults import rungs_here
from gemmlab.ops.op import GFLOPS

if TYPE_CHECKING:
    from gemmlab.devices.device import Device
    from gemmlab.kernels.by_name import NamedKernel
    from gemmlab.observe.counting import Count
    from gemmlab.ops.op import Op
    from gemmlab.timing.bench_plan import Plan


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """The arguments of a call: kernels are loaded and the device is open; peers, sizes and threads are
    unparsed text.
    """

    device: Device
    kernels: Sequence[NamedKernel]
    """Kernels to time. If empty, gemmlab's own call is timed, or the ladder if gemmlab has no call there."""
    op: str
    mode: str | None
    """State of the caches, `"warm"` or `"cold"`; `None` for the device's default."""
    sizes: str | None
    """Sizes as text; `None` for the device's default sizes."""
    peers: str
    threads: str
    rounds: int
    processes: int
    seed: int
    timeout_s: float
    verify: bool
    naive: bool
    configs: Sequence[Mapping[str, int]]
    """Configurations to time of the one kernel in `kernels`; empty for its default one, or with `some_configs`."""
    some_configs: str | None
    """`"all"`, or as text the number of configurations to take from the kernel's tuning space; `None` for none."""
    suite: bool = False
    """True if the sizes are the shapes of the suite that belong to the operation."""
    shapes_of: str | None = None
    """The suite's family of shapes; `None` for all families."""

    precision: str = HIGHEST
    """The precision of gemmlab's own call, or several, separated by commas; kernels have their own."""
    reproducible: bool = False
    """True if gemmlab's own call is also timed with `reproducible=True`."""
    packed: bool = False
    """True if gemmlab's own call on a CPU is also timed with a packed b."""
    factors: Mapping[str, float] = field(default_factory=dict)
    """Name -> value of alpha or beta, for every problem; by default alpha is 1 and beta 0."""
    budget_s: float = inf
    """Seconds after which no contestant is timed a second time at a size (`Plan.budget_s`)."""

    def plan(self) -> Plan:
        """Return the plan of a timed bench. Raises `UsageError`, and `PeerError` for a peer that is not installed."""
        from gemmlab.kernels.fitting import same_for_all
        from gemmlab.ops.catalog import find_op
        from gemmlab.ops.gemm import GemmOp
        from gemmlab.timing.baseline import baseline_spec
        from gemmlab.timing.bench_plan import Plan
        from gemmlab.timing.configurations import config_specs
        from gemmlab.timing.families import family_of
        from gemmlab.timing.float64_on_gpu import NOTE, product_on_gpu
        from gemmlab.timing.peers import PACKED, REPRODUCIBLE, parse_contestant, parse_peers

        op, where = find_op(self.op), self.device.device_name
        if op.file is None:
            raise UsageError(f"{op.name}: contestants are separate processes; state the operation in a Python file")
        family, mode = family_of(where.family, self.op), self.mode or where.modes[0]
        if (self.kernels or not (family.library_call or family.array_call)) and self.precision != HIGHEST:
            raise UsageError("--precision is for the library call; a kernel has its own")
        if self.reproducible and (self.kernels or op.unit != GFLOPS):
            raise UsageError("--reproducible is for the library call of products, batches and groups")
        if self.packed and (self.kernels or op.name != GemmOp.name or not family.host_threads):
            raise UsageError("--packed is for the library call of products on a CPU")
        if self.packed and self.precision != HIGHEST:
            raise UsageError("--packed: a packed operand is multiplied in float32; leave out --precision")
        if self.kernels or not (family.library_call or family.array_call):
            ours = config_specs(self._kernels(), where, mode, self.configs, self.some_configs)
        elif self.configs or self.some_configs is not None:
            raise UsageError("--config, --configs: name the kernel that they configure")
        else:
            precisions = dict.fromkeys(part.strip() for part in self.precision.split(","))
            if unknown := [each for each in precisions if each not in REQUESTS]:
                raise UsageError(f"--precision {unknown[0]}: precisions are {', '.join(REQUESTS)}")
            calls = ["gemmlab" if precision == HIGHEST else f"gemmlab:{precision}" for precision in precisions]
            ends = ("", REPRODUCIBLE) if self.reproducible else ("",)
            names = [*(f"{call}{end}" for call in calls for end in ends), *((PACKED,) if self.packed else ())]
            ours = [parse_contestant(name, where, mode, self.op) for name in names]
        products = self._with_factors(op, op.parse_sizes(self._sizes() or family.bench_sizes))
        problems, notes = same_for_all([one.kernel for one in self.kernels], op, products)
        if op.name == GemmOp.name and where.family == "cuda" and self.verify:
            product = product_on_gpu(int(where.which or 0))
            op, notes = GemmOp(product), [*notes, *([NOTE] if product else [])]
        return Plan(
            op=op, problems=problems, notes=notes,
            contestants=[*ours, *parse_peers(self.peers, where, mode, self.op, {spec.precision for spec in ours})],
            threads=_thread_counts(self.threads), rounds=self.rounds, processes=self.processes, seed=self.seed,
            budget_s=self.budget_s, verify=self.verify,
            timing=replace(family.timing[mode], timeout_s=self.timeout_s), device=where, mode=mode,
            baseline=baseline_spec(op, where, mode) if self.naive else None,
        )  # fmt: skip

    def count(self) -> Count:
        """Return what to count on an emulated device, which has no times. Raises `UsageError`."""
        from gemmlab.kernels.by_name import require_device
        from gemmlab.observe.counting import Count
        from gemmlab.ops.catalog import find_op
        from gemmlab.timing.families import family_of

        op, where = find_op(self.op), self.device.device_name
        kernels = [require_device(one.kernel, where) for one in self._kernels()]
        problems = self._with_factors(op, op.parse_sizes(self._sizes() or family_of(where.family, self.op).bench_sizes))
        return Count(op, self.device, kernels, problems, self.seed, verify=self.verify)

    def _with_factors(self, op: Op, problems: Sequence[Any]) -> list[Any]:
        """Return the problems with the values in `factors`. Raises `UsageError` if the operation lacks one of them."""
        for name in self.factors:
            if name not in op.factors.values():
                raise UsageError(f"--{name}: the operation {op.name} has no {name}")
        return [replace(problem, **self.factors) for problem in problems]

    def _sizes(self) -> str | None:
        """Return the sizes as text, those of the suite if `suite` is set; `None` for the device's default sizes.

        Raises `UsageError`.
        """
        from gemmlab.timing.suite.shapes import shipped_suite

        if not self.suite:
            if self.shapes_of is not None:
                raise UsageError("--family is for --suite")
            return self.sizes
        if self.sizes is not None:
            raise UsageError("--suite, --sizes: name one of them; the suite has its own sizes")
        shapes = shipped_suite().of_family(self.shapes_of)
        if not any(shape.op == self.op for shape in shapes):
            others = ", ".join(sorted({shape.op for shape in shapes}))
            raise UsageError(f"--suite: no shape of {self.op} in {self.shapes_of or 'the suite'}; write --op {others}")
        return ",".join(shape.text for shape in shapes if shape.op == self.op)

    def _kernels(self) -> Sequence[NamedKernel]:
        """Return the kernels of the request, or the rungs that run on the device if it names none."""
        from gemmlab.kernels.by_name import NamedKernel

        return self.kernels or [NamedKernel(kernel) for kernel in rungs_here(self.op, self.device)]


def _thread_counts(text: str) -> list[int]:
    counts = []
    for part in text.split(","):
        if not (part.strip().isascii() and part.strip().isdigit()) or int(part) < 1:
            raise UsageError(f"--threads {text!r}: {part.strip()!r} is not a whole number of at least 1")
        counts.append(int(part))
    return list(dict.fromkeys(counts))
