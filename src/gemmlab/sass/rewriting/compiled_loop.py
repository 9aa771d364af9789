"""Main loops of compiled code: the registers of their fragments and sums, and their other instructions."""

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
"""Rows and columns of a thread's results, and steps of k in an iteration."""
LOADS = (ROWS + COLUMNS) // 4
"""Number of LDS.128 instructions in a step of k: four for A and two for B."""
ROOM = "PMTRIG"
"""Opcode of `pmevent`, by which the source reserves room for further instructions after the loop."""
_A_APART, _B_APART = 64, 128
"""Bytes between the parts of a fragment, for A and for B; a part is the four elements of one LDS.128."""
_PRODUCTS = ROWS * COLUMNS * DEPTH


@dataclass(frozen=True, slots=True)
class CompiledLoop:
    """A main loop of compiled code, as far as the rewriting needs it."""

    function: SassFunction
    start: int
    stop: int
    """`start` and `stop` are the indices of the loop's first instruction and of the one behind its last."""
    room: int
    """Number of instructions right behind the loop that the source reserves (`ROOM`)."""
    loads: tuple[Instruction, Instruction]
    """The first load of A and of B in the compiler's loop.

    They are the patterns of the loads in all steps of the rewritten loop but the last.
    """
    next_loads: tuple[Instruction, Instruction]
    """The first load of A and of B for the next iteration's first step.

    They are the patterns of the loads in the last step of the rewritten loop.
    """
    product: Instruction
    """The first FFMA of the loop; the FFMAs of the rewritten loop get its source line."""
    others: tuple[Instruction, ...]
    """Instructions that the loop needs beside FFMAs, loads of fragments and `StageAddress.following`."""
    a: dict[int, int]
    b: dict[int, int]
    """`a` maps a row to the register of its value of A in step 0, `b` a column to that of its value of B."""
    of_a: StageAddress
    of_b: StageAddress
    apart: tuple[int, int]
    """Bytes in shared memory between two steps of k, for A and for B."""
    sums: dict[tuple[int, int], int]
    """(row, column) -> register of the sum."""
    carried: frozenset[int]
    """Registers, other than fragments and sums, that an iteration reads before it writes them."""
    behind: frozenset[int]
    """Registers that are live after the loop."""
    through: frozenset[int]
    """Registers that are live after the loop or right before it."""


def compiled_loops(function: SassFunction) -> list[CompiledLoop]:
    """Return every loop of a single block with 16 x 8 results a thread and 8 steps of k an iteration.

    Raises `UsageError` if there is none, or if one of them has another form than the rewriting knows.
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
    steps = [_apart(loads, some) for some in first]
    of_a, of_b = (stage_address(name, code, *loads) for loads in zip(first, last, steps, strict=True))
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
        function, block.start, block.stop, _room(function, graph, block),
        (first[0][0], first[1][0]), (last[0][0], last[1][0]),
        next(one for one in code if one.opcode == "FFMA"),
        needed(code, loads, (of_a.following, of_b.following), carried | behind), a, b, of_a, of_b, (steps[0], steps[1]),
        sums, carried, behind, behind | frozenset(live[block.start - 1]),
    )  # fmt: skip


def _by_operand(name: str, loads: Sequence[Instruction]) -> tuple[list[Instruction], list[Instruction]]:
    """Return (loads of A's fragment, loads of B's) from the loads of one step.

    Raises `UsageError` unless four loads, those of A, have one address register and two, those of B, another.
    """
    by_base: dict[int, list[Instruction]] = {}
    for one in loads:
        by_base.setdefault(one.operands[1].base, []).append(one)
    groups = sorted(by_base.values(), key=len, reverse=True)
    if [len(some) for some in groups] != [ROWS // 4, COLUMNS // 4]:
        raise UsageError(f"{name}: the loads of a step have addresses in {len(by_base)} registers, not A and B in two")
    return groups[0], groups[1]


def _apart(loads: Sequence[Instruction], first: Sequence[Instruction]) -> int:
    """Return the bytes between two steps of an operand, given all loads of the loop and the operand's in step 1."""
    base = first[0].operands[1].base
    offsets = sorted(one.operands[1].value for one in loads if one.operands[1].base == base)
    return offsets[len(first)] - offsets[0]


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
        raise UsageError(f"{function.name}: {len(sums)} sums in the first step, not {ROWS * COLUMNS}")
    return sums
