"""The statements of a kernel file as values. Their types, names and expressions are checked; the code is not read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gemmlab.core.errors import UsageError
from gemmlab.core.expr import Expression, parse
from gemmlab.core.program import Config
from gemmlab.kernels.claims import Expectation
from gemmlab.kernels.cuda_file.fact_reader import FactReader
from gemmlab.kernels.cuda_file.header import HeaderValues
from gemmlab.kernels.cuda_file.maps import ALIGNMENT, OperandMap, check_maps, read_maps
from gemmlab.kernels.kernel import ALL_STEPS
from gemmlab.kernels.names import OpNames, names_of

PHASE = "phase"
"""The name, in expressions, for the number of a launch within one execution."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts that are stated about one kernel. Each field has a value for a fact that is not stated."""

    stated: HeaderValues
    summary: str
    idea: str
    source: str
    op: str
    kernel: str
    """Name of the function; empty if not stated."""
    after: str | None
    """Id of the rung that the kernel comes after, empty for a first rung; `None` if not stated."""
    branch: bool
    aliases: tuple[str, ...]
    arch: str
    precision: str
    """The stated precision; empty for the operation's default."""
    params: Config
    tune: Mapping[str, tuple[int, ...]]
    search: Mapping[str, tuple[int, ...]]
    """Values by parameter, besides those of `tune`, that only a search within a budget tries."""
    require: tuple[Expression, ...]
    grid: tuple[Expression, ...]
    threads: tuple[Expression, ...]
    smem_bytes: Expression
    steps: Expression
    """The number of steps along k that a block takes; the expression may also name `blocks`, the number of blocks."""
    tiles: Expression | None
    """The number of blocks that take `steps` steps; `None` if all blocks do."""
    again: Mapping[str, str]
    """Values of the next launch by name (`{N = "blocks", x = "out"}`), for a kernel that is launched again on its own
    results; else empty.
    """
    phases: Expression
    """The number of launches of one execution. Expressions of the launch and of arguments may name `phase`, the number
    of the launch, from 0 on.
    """
    cooperative: bool
    """True if all blocks of a launch must be resident together."""
    constants: Mapping[str, tuple[Expression | float, ...]]
    """The numbers that `__constant__` variables hold, by the variables' names."""
    early: bool
    """True if launches after the first may begin before the previous one has ended; they wait for its results."""
    workspace: Expression | None
    """Bytes of memory besides the operands; the expression may also name `blocks`. `None` if none are needed."""
    tickets: Expression | None
    """Number of 32-bit words that are zero before and after each launch; the expression may also name `blocks`. `None`
    if the kernel has no tickets.
    """
    roundings: Expression | None
    """The most consecutive additions that a term goes through in one launch; the expression may also name `blocks`.
    `None` if not stated.
    """
    in_order: Expression
    """An expression that is true for configurations in which each result is one chain of multiply-adds in the order of
    k.
    """
    align: int
    """Alignment of operands in bytes: the stated one, and at least 16 with tensor maps; 0 without either."""
    aligned_rows: bool
    """True if the file states `align`: rows have the same alignment as operands."""
    always_reads: tuple[str, ...]
    """Operands that the kernel reads even if their factor is 0."""
    layouts: tuple[str, ...]
    args: tuple[str, ...] | None
    options: tuple[tuple[HeaderValues, tuple[str, ...]], ...]
    """Options of the compiler by the statement that gives them; folders of headers are relative to the file's."""
    maps: tuple[OperandMap, ...]
    """Tensor maps over the operands that the copy engine loads."""
    expect: tuple[Expectation, ...]
    written_anew: tuple[str, ...]
    """Architectures for which gemmlab rewrites the compiled main loop in the machine code of its package."""
    exercise: str
    """The rung whose exercise the file solves; empty if it is no solution."""

    @property
    def constant_names(self) -> frozenset[str]:
        """Names that the expressions in `constants` have: their values reach the kernel without an argument."""
        parts = (part for values in self.constants.values() for part in values if isinstance(part, Expression))
        return frozenset().union(*(part.names for part in parts))

    @property
    def names(self) -> OpNames:
        """Names of the operation's values; `workspace` and `tickets` are among the operands if the kernel has them."""
        names = names_of(self.op)
        memory = (("workspace", self.workspace), ("tickets", self.tickets))
        return replace(names, operands=(*names.operands, *(name for name, stated in memory if stated is not None)))


def read_facts(stated: HeaderValues, default_op: str, text: str = "") -> Facts:
    """Check all stated values and return the facts; the operation is `default_op` unless one is stated.

    `text` is the file's own: `UsageError`, which names file, line and key, tells of a macro that an expression uses.
    """
    reader = FactReader(stated, text)
    op = reader.text("op", default_op)
    if op.endswith(".py"):
        raise stated.error("op", f"{op!r} is a Python file: only the command line can name one, as --op {op}")
    try:
        names = names_of(op)
    except UsageError as error:
        raise stated.error("op", str(error)) from None
    params = reader.params(names)
    reader.name_parts(names)
    known = (*names.in_expressions, *params)
    phases = reader.phases(known)
    of_launch = (*known, PHASE)
    layouts, maps = reader.layouts(), read_maps(stated, names, params)
    check_maps(stated, maps, params, layouts)
    return Facts(
        stated=stated,
        summary=reader.text("summary"),
        idea=reader.text("idea"),
        source=reader.text("source"),
        op=op,
        kernel=reader.text("kernel"),
        after=reader.after(),
        branch=reader.flag("branch"),
        aliases=reader.aliases(),
        arch=reader.arch(),
        precision=reader.precision(),
        params=params,
        tune=reader.ranges("tune", params),
        search=reader.ranges("search", params),
        require=tuple(reader.expression("require", text, known) for text in reader.texts("require")),
        grid=reader.dimensions("grid", of_launch),
        threads=reader.dimensions("threads", of_launch),
        smem_bytes=reader.expression("smem_bytes", reader.number_or_text("smem_bytes"), of_launch),
        steps=reader.optional("steps", (*known, "blocks")) or parse(ALL_STEPS),
        tiles=reader.optional("tiles", known),
        again=reader.again(names),
        phases=phases,
        cooperative=reader.cooperative(),
        constants=reader.constants(known),
        early=reader.flag("early"),
        workspace=reader.memory("workspace", (*known, "blocks")),
        tickets=reader.memory("tickets", (*known, "blocks")),
        roundings=reader.optional("roundings", (*known, "blocks")),
        in_order=reader.condition("in_order", params),
        align=max(reader.align(), ALIGNMENT if maps else 0),
        aligned_rows=reader.align() > 0,
        always_reads=reader.always_reads(names),
        layouts=layouts,
        maps=maps,
        args=reader.args(),
        options=reader.options(),
        expect=reader.expect(op, params),
        written_anew=reader.written_anew(),
        exercise=reader.text("exercise"),
    )
