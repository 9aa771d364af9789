"""The loop that a compiler made: which registers hold fragments and sums, and what else it does."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.core.errors import UsageError
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.cells import UNIFORM
from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.liveness import live_registers
from gemmlab.sass.loops import main_loop
from gemmlab.sass.register_accesses import accesses_of

ROWS, COLUMNS, DEPTH = 16, 8, 8
"""Results of a thread, and steps of k in an iteration."""
_A_APART, _B_APART = 64, 128
"""Bytes between the parts of a fragment, of four elements each."""
_LOADS = (ROWS + COLUMNS) // 4


@dataclass(frozen=True, slots=True)
class CompiledLoop:
    function: SassFunction
    start: int
    stop: int
    """Indices of the loop's first instruction and of the one behind its last."""
    loads: tuple[Instruction, ...]
    """The LDS.128, those of the next iteration last."""
    others: tuple[Instruction, ...]
    """Everything else but FFMAs."""
    a: dict[int, int]
    b: dict[int, int]
    """Registers of the fragments of step 0, by row and by column."""
    of_a: frozenset[int]
    """Registers that hold the address of A's stage for the last loads; of the others, B's."""
    a_from: int
    b_from: int
    """Least offsets of the fragments in their stages, in bytes."""
    sums: dict[tuple[int, int], int]
    carried: frozenset[int]
    """Registers that an iteration reads of what came before it."""
    behind: frozenset[int]
    """Registers that are live behind the loop."""
    through: frozenset[int]
    """Registers that are live behind or just before the loop."""


def touched(instruction: Instruction, *, writes: bool) -> set[int]:
    """The registers that an instruction writes, or reads."""
    accesses = accesses_of(instruction)
    some = accesses.writes if writes else accesses.reads
    return {cell for access in some for cell in access.cells if cell < UNIFORM}


def compiled_loop(function: SassFunction) -> CompiledLoop:
    """Read the main loop of a function. Raises `UsageError` if it is not one of 16 x 8 results with a step of 8."""
    loop = main_loop(function)
    if loop is None or len(loop.own) != 1:
        count = 0 if loop is None else len(loop.own)
        raise UsageError(f"{function.name}: a main loop of one block is written anew; it has {count} blocks")
    (block,) = (flow_graph(function).blocks[index] for index in loop.own)
    code = function.instructions[block.start : block.stop]
    products = sum(one.opcode == "FFMA" for one in code)
    if products != ROWS * COLUMNS * DEPTH:
        raise UsageError(f"{function.name}: {products} FFMAs in the main loop, not {ROWS} x {COLUMNS} x {DEPTH}")
    loads = tuple(one for one in code if one.opcode == "LDS" and "128" in one.modifiers)
    if len(loads) != _LOADS * DEPTH:
        raise UsageError(f"{function.name}: {len(loads)} LDS.128 in the main loop, not {_LOADS * DEPTH}")
    last = loads[-_LOADS:]
    by_base: dict[int, list[int]] = {}
    for one in last:
        by_base.setdefault(one.operands[1].base, []).append(one.operands[1].value)
    of_b = {base for base, some in by_base.items() if len(some) == 2 and abs(some[0] - some[1]) == _B_APART}
    of_a = frozenset(by_base) - of_b
    if len(of_a) != 1 or len(of_b) != 1:
        raise UsageError(
            f"{function.name}: the last loads have addresses in {len(by_base)} registers, not A and B in two"
        )
    a_from, b_from = (min(by_base[base]) for (base,) in (of_a, of_b))
    a: dict[int, int] = {}
    b: dict[int, int] = {}
    for one in last:
        home, start, apart = (a, a_from, _A_APART) if one.operands[1].base in of_a else (b, b_from, _B_APART)
        for lane in range(4):
            home[(one.operands[1].value - start) // apart * 4 + lane] = one.operands[0].index + lane
    if sorted(a) != [*range(ROWS)] or sorted(b) != [*range(COLUMNS)]:
        raise UsageError(f"{function.name}: its fragments have rows {sorted(a)} and columns {sorted(b)}")
    written, carried = set[int](), set[int]()
    for one in code:
        carried |= touched(one, writes=False) - written
        if one.predicate is None:
            written |= touched(one, writes=True)
    live = live_registers(function)
    return CompiledLoop(
        function, block.start, block.stop, loads,
        tuple(one for one in code if one.opcode != "FFMA" and one not in loads), a, b, of_a, a_from, b_from,
        _sums(function, code, a, b), frozenset(carried), frozenset(live[block.stop]),
        frozenset(live[block.stop]) | frozenset(live[block.start - 1]),
    )  # fmt: skip


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
        stale |= touched(one, writes=True)
    if len(set(sums.values())) != ROWS * COLUMNS or len(sums) != ROWS * COLUMNS:
        raise UsageError(f"{function.name}: {len(sums)} sums found in the first step, not {ROWS * COLUMNS}")
    return sums
