"""The listing of one function: the facts that follow from its machine code alone, without a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gemmlab.core.program import Artifact
from gemmlab.sass.banks import bank_reads, conflict_cycles
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.instruction import Instruction, SassFunction, SourceLine
from gemmlab.sass.liveness import live_registers
from gemmlab.sass.loops import Loop, find_loops
from gemmlab.sass.parse import parse
from gemmlab.sass.source_places import source_places
from gemmlab.toolchain.line_tables import FunctionLines, read_line_tables


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction with what its place in the code determines: source lines, live registers, loops."""

    instruction: Instruction = field(repr=False)
    places: tuple[SourceLine, ...]
    """Source lines from the innermost inlined function out to the kernel's own; empty if unknown."""
    ptx_line: int
    """Line of the PTX, counted from 1; 0 if unknown."""
    live: int
    """Number of live registers, including those that the instruction writes."""
    banks: tuple[int, ...]
    """Number of registers read from each bank, without those in the operand cache; empty if none is read.

    Only 32-bit arithmetic counts (`sass.banks`).
    """
    conflict_cycles: int
    """Cycles beyond the first one that reading the operands from the register banks takes."""
    depth: int
    """Number of loops around the instruction."""
    loop: int | None
    """Byte address of the first instruction of the innermost loop; `None` outside of loops."""

    @property
    def address(self) -> int:
        """Bytes from the function's first instruction."""
        return self.instruction.address

    @property
    def called_from(self) -> tuple[SourceLine, ...]:
        """The places at which the line was inlined, the innermost first."""
        return self.places[1:]


@dataclass(frozen=True, slots=True)
class Span:
    """One loop by the addresses of its first and last instruction."""

    first: int
    last: int
    depth: int


@dataclass(frozen=True, slots=True)
class Code:
    """The listing of one function."""

    title: str
    """The kernel's id, or the function's name."""
    config: Mapping[str, int]
    arch: str
    compiler: str
    digest: str
    entry: str
    """Mangled name of the function."""
    registers: int
    """Registers per thread; 0 if unknown."""
    rows: tuple[Row, ...] = field(repr=False)
    loops: tuple[Span, ...]
    ptx: tuple[str, ...] = field(repr=False)
    """Lines of the PTX; empty if the artifact does not contain it."""

    @property
    def most_live(self) -> int:
        """The largest number of live registers at any instruction."""
        return max((row.live for row in self.rows), default=0)

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the source files, the kernel's own first."""
        outermost = {row.places[-1][0]: None for row in self.rows if row.places}
        every = {file: None for row in self.rows for file, _ in row.places}
        return tuple(dict.fromkeys((*outermost, *every)))


def code_of(artifact: Artifact, config: Mapping[str, int] | None = None, title: str = "") -> Code:
    """Return the listing of an artifact's entry without the NOPs after its end. The artifact must contain `sass` text.

    `title` is by default the kernel's name. Raises `UsageError` if the cubin's line information is malformed.
    """
    function = parse(artifact.texts["sass"])[artifact.entry]
    tables = read_line_tables(artifact.code, artifact.kernel)
    lines = tables.functions.get(artifact.entry, FunctionLines((), ()))
    places = source_places(function, lines, artifact.texts.get("ptx", ""))
    depths, inner, spans = _loops(function)
    live = live_registers(function)
    reads = bank_reads(function.instructions, artifact.target)
    conflicts = conflict_cycles(function.instructions, artifact.target)
    rows = tuple(
        Row(
            instruction=i, places=places[i.address], ptx_line=lines.ptx_line(i.address), live=len(live[at]),
            banks=reads[at] if any(reads[at]) else (), conflict_cycles=conflicts[at], depth=depths.get(i.address, 0),
            loop=inner.get(i.address),
        )
        for at, i in enumerate(_without_padding(function))
    )  # fmt: skip
    return Code(
        title or artifact.kernel, dict(config or {}), artifact.target, artifact.compiler, artifact.digest,
        artifact.entry, artifact.resources.get("registers", 0), rows, spans, tables.ptx,
    )  # fmt: skip


def _without_padding(function: SassFunction) -> tuple[Instruction, ...]:
    """Return the instructions without the NOPs after the last other instruction."""
    end = len(function.instructions)
    while end and function.instructions[end - 1].opcode == "NOP":
        end -= 1
    return function.instructions[:end]


def _loops(function: SassFunction) -> tuple[dict[int, int], dict[int, int], tuple[Span, ...]]:
    """Return two mappings by instruction address, and all loops of a function, outer ones first.

    The first mapping is to the number of loops around the instruction, the second to the address at which the innermost
    one begins. Instructions outside loops are in neither.
    """
    graph = flow_graph(function)
    depths: dict[int, int] = {}
    inner: dict[int, int] = {}
    spans = []
    for loop in sorted(find_loops(graph), key=lambda one: one.depth):
        addresses = [i.address for i in graph.instructions(*loop.blocks)]
        first = _start(function, graph.blocks[loop.header].start)
        depths.update(dict.fromkeys(addresses, loop.depth))
        inner.update(dict.fromkeys(addresses, first))
        spans.append(_span(loop, first, addresses))
    return depths, inner, tuple(spans)


def _start(function: SassFunction, place: int) -> int:
    return function.instructions[place].address


def _span(loop: Loop, first: int, addresses: list[int]) -> Span:
    return Span(first, max(addresses), loop.depth)
