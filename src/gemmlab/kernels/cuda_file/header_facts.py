"""The statements of a kernel file, checked: types, names and expressions. Nothing here looks at the code."""

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
"""Name of the number of a launch among those of one execution."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it; what was not stated has the value that means so."""

    stated: HeaderValues
    summary: str
    idea: str
    source: str
    op: str
    kernel: str
    """Name of the function; empty where it was not stated."""
    after: str | None
    """Id of the rung it comes after, empty for a first one; `None` where nothing was stated."""
    branch: bool
    aliases: tuple[str, ...]
    arch: str
    precision: str
    """The precision that was stated; empty for the operation's usual one."""
    params: Config
    tune: Mapping[str, tuple[int, ...]]
    search: Mapping[str, tuple[int, ...]]
    """Values that only a search within a budget tries, beside those of `tune`."""
    require: tuple[Expression, ...]
    grid: tuple[Expression, ...]
    threads: tuple[Expression, ...]
    smem_bytes: Expression
    steps: Expression
    """The number of steps along k that a block takes; it may also name `blocks`."""
    tiles: Expression | None
    """The blocks that take `steps` steps; `None` where all of the grid do."""
    again: Mapping[str, str]
    """Values of the next launch by name (`{N = "blocks", x = "out"}`), if more than one block is launched; else empty.
    """
    phases: Expression
    """The number of launches of one execution. Expressions of the launch and the arguments may name `phase`, from 0 on.
    """
    early: bool
    """True if launches after the first may begin before the one ahead has ended, for whose results they wait."""
    workspace: Expression | None
    """Bytes of memory that it is given beside the operands; it may also name `blocks`. `None` where it has none."""
    tickets: Expression | None
    """Number of 32-bit words that are zero before each launch and after it; `None` where it has none."""
    roundings: Expression | None
    """The roundings of one launch; the expression may also name `blocks`, the number of blocks."""
    in_order: Expression
    """True, for a configuration, if each result is one chain of multiply-adds in the order of k."""
    align: int
    """Bytes that operands must begin on, their rows too, if it was stated; 0 if only elements are aligned."""
    aligned_rows: bool
    always_reads: tuple[str, ...]
    """Operands that it reads even if the factor before them is 0."""
    layouts: tuple[str, ...]
    args: tuple[str, ...] | None
    options: tuple[str, ...]
    """Options of the compiler, of all statements together; folders of headers are relative to the file's own."""
    maps: tuple[OperandMap, ...]
    """Operands that the copy engine brings."""
    expect: tuple[Expectation, ...]
    written_anew: tuple[str, ...]
    """Architectures for which the main loop in the package's machine code is written anew."""
    exercise: str
    """The rung whose exercise the file is a solution of; empty where it is none."""

    @property
    def names(self) -> OpNames:
        """Names of the operation's values; `workspace` and `tickets` are among the operands if the kernel has them."""
        names = names_of(self.op)
        memory = (("workspace", self.workspace), ("tickets", self.tickets))
        return replace(names, operands=(*names.operands, *(name for name, stated in memory if stated is not None)))


def read_facts(stated: HeaderValues, default_op: str) -> Facts:
    """Check everything that was stated. `UsageError` names file, line and key."""
    reader = FactReader(stated)
    op = reader.text("op", default_op)
    try:
        names = names_of(op)
    except UsageError as error:
        raise stated.error("op", str(error)) from None
    params = reader.params(names)
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
