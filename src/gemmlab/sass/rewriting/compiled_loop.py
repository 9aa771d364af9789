"""The loops that a compiler made: which registers hold fragments and sums, and what else they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.blocks import Block, FlowGraph, flow_graph
from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.liveness import live_registers
from gemmlab.sass.rewriting.register_cells import registers
from gemmlab.sass.rewriting.stage_address import StageAddress, needed, stage_address

ROWS, COLUMNS, DEPTH = 16, 8, 8
"""Results of a thread, and steps of k in an iteration."""
A_STEP, B_STEP = 4 * 132, 4 * 260
"""Bytes between steps of k in a stage."""
LOADS = (ROWS + COLUMNS) // 4
"""Loads of a step."""
ROOM = "PMTRIG"
"""Opcode (`pmevent`) of the instructions with which the source reserves room after the loop."""
_A_APART, _B_APART = 64, 128
"""Bytes between the parts of a fragment, of four elements each."""
_PRODUCTS = ROWS * COLUMNS * DEPTH


@dataclass(frozen=True, slots=True)
class CompiledLoop:
    function: SassFunction
    start: int
    stop: int
    """Indices of the loop's first instruction and of the one behind its last."""
    room: int
    """Words right behind the loop that the source reserves."""
    template: Instruction
    """A load of a fragment."""
    others: tuple[Instruction, ...]
    """Everything that has to be done but FFMAs, loads of fragments and the last step of their addresses."""
    a: dict[int, int]
    b: dict[int, int]
    """Registers of the fragments of step 0, by row and by column."""
    of_a: StageAddress
    of_b: StageAddress
    sums: dict[tuple[int, int], int]
    carried: frozenset[int]
    """Other registers that an iteration reads of what came before it."""
    behind: frozenset[int]
    """Registers that are live behind the loop."""
    through: frozenset[int]
    """Registers that are live behind or just before the loop."""


def compiled_loops(function: SassFunction) -> list[CompiledLoop]:
    """Read every loop of one block with 16 x 8 results and a step of 8.

    Raises `UsageError` if there is none, or if one does something that is not known.
    """
    graph = flow_graph(function)
    found = [
        block
        for number, block in enumerate(graph.blocks)
        if number in block.successors
        and sum(one.opcode == "FFMA" for one in function.instructions[block.start : block.stop]) == _PRODUCTS
    ]
    if not found:
        raise UsageError(f"{function.name}: no loop of one block with {ROWS} x {COLUMNS} x {DEPTH} FFMAs")
    live = live_registers(function)
    return [_compiled(function, graph, block, live) for block in found]


def _compiled(function: SassFunction, graph: FlowGraph, block: Block, live: Sequence[frozenset[int]]) -> CompiledLoop:
    name, code = function.name, function.instructions[block.start : block.stop]
    loads = [one for one in code if one.opcode == "LDS" and "128" in one.modifiers]
    if len(loads) != LOADS * DEPTH:
        raise UsageError(f"{name}: {len(loads)} LDS.128 in the main loop, not {LOADS * DEPTH}")
    first, last = (_by_operand(name, some) for some in (loads[:LOADS], loads[-LOADS:]))
    of_a, of_b = (
        stage_address(name, code, first[place], last[place], step) for place, step in enumerate((A_STEP, B_STEP))
    )
    a, b = (
        _fragment(last[place], address.offset, apart)
        for place, address, apart in ((0, of_a, _A_APART), (1, of_b, _B_APART))
    )
    if sorted(a) != [*range(ROWS)] or sorted(b) != [*range(COLUMNS)]:
        raise UsageError(f"{name}: its fragments have rows {sorted(a)} and columns {sorted(b)}")
    sums = _sums(function, code, a, b)
    carried = _carried(code) - {*sums.values(), *a.values(), *b.values()}
    behind = frozenset(live[block.stop])
    return CompiledLoop(
        function, block.start, block.stop, _room(function, graph, block), loads[0],
        needed(code, loads, (of_a.following, of_b.following), carried | behind), a, b, of_a, of_b, sums, carried,
        behind, behind | frozenset(live[block.start - 1]),
    )  # fmt: skip


def _by_operand(name: str, loads: Sequence[Instruction]) -> tuple[list[Instruction], list[Instruction]]:
    """The loads of A's and of B's fragment in a step."""
    by_base: dict[int, list[Instruction]] = {}
    for one in loads:
        by_base.setdefault(one.operands[1].base, []).append(one)
    groups = sorted(by_base.values(), key=len, reverse=True)
    if [len(some) for some in groups] != [ROWS // 4, COLUMNS // 4]:
        raise UsageError(f"{name}: the loads of a step have addresses in {len(by_base)} registers, not A and B in two")
    return groups[0], groups[1]


def _fragment(loads: Sequence[Instruction], offset: int, apart: int) -> dict[int, int]:
    return {
        (one.operands[1].value - offset) // apart * 4 + lane: one.operands[0].index + lane
        for one in loads
        for lane in range(4)
    }


def _carried(code: Sequence[Instruction]) -> frozenset[int]:
    written, carried = set[int](), set[int]()
    for one in code:
        carried |= registers(one, writes=False) - written
        if one.predicate is None:
            written |= registers(one, writes=True)
    return frozenset(carried)


def _room(function: SassFunction, graph: FlowGraph, block: Block) -> int:
    number = next(index for index, one in enumerate(graph.blocks) if one.start == block.stop)
    if [other for other in graph.blocks if number in other.successors] != [block]:
        raise UsageError(f"{function.name}: the code behind the main loop is entered from elsewhere too")
    following = function.instructions[block.stop : graph.blocks[number].stop]
    return next((count for count, one in enumerate(following) if one.opcode != ROOM), len(following))


def _sums(
    function: SassFunction, code: tuple[Instruction, ...], a: dict[int, int], b: dict[int, int]
) -> dict[tuple[int, int], int]:
    rows, columns = ({register: n for n, register in home.items()} for home in (a, b))
    sums: dict[tuple[int, int], int] = {}
    stale = set[int]()
    for one in code:
        if one.opcode == "FFMA":
            _result, x, y, addend = (operand.index for operand in one.operands[:4])
            if x in columns and y in rows:
                x, y = y, x
            if x in rows and y in columns and not {x, y, addend} & stale:
                sums[rows[x], columns[y]] = addend
        stale |= registers(one, writes=True)
    if len(set(sums.values())) != ROWS * COLUMNS or len(sums) != ROWS * COLUMNS:
        raise UsageError(f"{function.name}: {len(sums)} sums found in the first step, not {ROWS * COLUMNS}")
    return sums
