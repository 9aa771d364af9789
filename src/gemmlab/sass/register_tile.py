"""The tile of results that a thread has in registers, found from the operands of its multiply-adds alone.

In one step of k, the thread multiplies each of its values of A by each of its values of B:

              b0   b1   b2   b3        A bipartite graph has values of A and B as nodes and multiply-adds as edges.
        a0   R8   R9   R10  R11        A connected component is one step of k. Its two sides are the rows and the
        a1   R12  R13  R14  R15        columns of the tile, and each edge is the sum in that row and column.

Compilers rename registers, swap them, and load them a step ahead. The nodes are therefore values, not registers: a
value is the content of a register from one write to the next, which may be in the loop's next iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemmlab.sass.banks import conflict_cycles, register_file
from gemmlab.sass.instruction import RZ, URZ, Instruction, Operand
from gemmlab.sass.pipes import pipe

MULTIPLY_ADDS = frozenset({"FFMA", "HMMA"})
_OUTSIDE = -1
"""Index of the writing instruction in a `Value` that no instruction of the loop wrote."""
_WIDTHS = {"128": 4, "64": 2, "WIDE": 2}

Value = tuple[int, int]
"""(register, index in the loop of the instruction that wrote this content)."""


@dataclass(frozen=True, slots=True)
class Factor:
    """The value of A or B that belongs to a row or column of the tile in the shown step of k."""

    register: int
    bank: int
    base: str
    """Address registers of the load that wrote `register`, such as `"R46"`; empty if no load in the loop wrote it."""
    offset: int
    """Bytes from `base` to the value in memory."""

    @property
    def address(self) -> str:
        """Memory address of the value, such as `"[R46+0x10]"`; empty without `base`."""
        offset = f"+{self.offset:#x}" if self.offset else ""
        return f"[{self.base}{offset}]" if self.base else ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One multiply-add of the shown step of k. `row` and `column` are indices into those of the tile."""

    row: int
    column: int
    order: int
    """Position among the multiply-adds of the step, 0 for the first."""
    register: int
    """Register of the sum."""
    bank: int
    """Bank of `register`."""
    reuse: tuple[str, ...]
    """Operands with `.reuse`: `"row"`, `"column"`, `"sum"`."""
    conflict_cycles: int
    address: int


@dataclass(frozen=True, slots=True)
class RegisterTile:
    """A thread's tile of results, with the multiply-adds of one step of k: the shown step, which has the most."""

    opcode: str
    banks: int
    rows: tuple[Factor, ...]
    columns: tuple[Factor, ...]
    cells: tuple[Cell, ...]
    """Multiply-adds of the step, in the order of the code."""
    accumulators: int
    """Number of sums in the whole loop; larger than the number of `cells` if the shown step updates only some sums."""
    steps: int
    """Number of steps of k in one iteration of the loop."""


def register_tile(instructions: Sequence[Instruction], arch: str) -> RegisterTile | None:
    """Return the register tile of a main loop, whose instructions are in program order.

    Only FFMA or HMMA counts, whichever is more frequent, with registers as its four operands. Returns `None` if there
    are none, or if they do not form a tile.
    """
    writes = _writes(instructions)
    adds = [(at, i) for at, i in enumerate(instructions) if _multiply_adds(i)]
    counts = {opcode: sum(i.opcode == opcode for _at, i in adds) for opcode in MULTIPLY_ADDS}
    opcode = max(counts, key=lambda name: counts[name])
    adds = [(at, i) for at, i in adds if i.opcode == opcode]
    if not adds:
        return None
    edges = {at: (_read(writes, i.operands[1], at), _read(writes, i.operands[2], at)) for at, i in adds}
    steps = _connected(edges)
    sums = _sums(adds, writes)
    shown = max(steps, key=len)
    sides = _sides(shown, edges)
    if sides is None or len({sums[at] for at in shown}) < len(shown):
        return None
    banks = register_file(arch).banks
    rows, columns = (_ordered(side, instructions, banks) for side in sides)
    costs = conflict_cycles(instructions, arch)
    cells = []
    for order, at in enumerate(shown):
        one, two = edges[at]
        turned = one not in rows
        row, column = (two, one) if turned else (one, two)
        names = ("column", "row", "sum") if turned else ("row", "column", "sum")
        operands = instructions[at].operands
        cells.append(Cell(
            list(rows).index(row), list(columns).index(column), order, operands[0].index, operands[0].index % banks,
            tuple(name for name, operand in zip(names, operands[1:4], strict=True) if operand.reuse), costs[at],
            instructions[at].address,
        ))  # fmt: skip
    return RegisterTile(
        opcode, banks, tuple(rows.values()), tuple(columns.values()), tuple(cells), len(set(sums.values())), len(steps)
    )


def _multiply_adds(instruction: Instruction) -> bool:
    operands = instruction.operands
    return (
        instruction.opcode in MULTIPLY_ADDS
        and len(operands) >= 4
        and all(operand.kind == "reg" for operand in operands[:4])
        and RZ not in (operands[1].index, operands[2].index)
    )


def _writes(instructions: Sequence[Instruction]) -> Mapping[int, list[int]]:
    """Return, for each register, the ascending indices of the instructions that write it."""
    found: dict[int, list[int]] = {}
    for at, i in enumerate(instructions):
        if i.operands and i.operands[0].kind == "reg" and i.operands[0].index != RZ and pipe(i) != "cbu":
            first = i.operands[0].index
            wide = 4 if i.opcode == "HMMA" else max((_WIDTHS.get(m, 1) for m in i.modifiers), default=1)
            for register in range(first, first + wide):
                found.setdefault(register, []).append(at)
    return found


def _read(writes: Mapping[int, list[int]], operand: Operand, at: int) -> Value:
    """Return the value that an operand of instruction `at` reads.

    If no earlier instruction of the loop writes the register, the last later one wrote it in the previous iteration. If
    there is none either, the index is `_OUTSIDE`.
    """
    places = writes.get(operand.index, [])
    before = [place for place in places if place < at]
    return operand.index, (before or places or [_OUTSIDE])[-1]


def _connected(edges: Mapping[int, tuple[Value, Value]]) -> list[list[int]]:
    """Return the connected components of the graph as lists of instruction indices, ordered by their first indices.

    `edges` maps the index of a multiply-add to its two factors.
    """
    parent: dict[Value, Value] = {}
    for one, two in edges.values():
        parent[_root(parent, one)] = _root(parent, two)
    groups: dict[Value, list[int]] = {}
    for at, (one, _two) in edges.items():
        groups.setdefault(_root(parent, one), []).append(at)
    return list(groups.values())


def _sums(adds: Sequence[tuple[int, Instruction]], writes: Mapping[int, list[int]]) -> dict[int, Value]:
    """Return the sum that each multiply-add updates, by the index of the multiply-add.

    A sum is represented by one of its values; it stays the same sum if it moves to another register.
    """
    parent: dict[Value, Value] = {}
    for at, i in adds:
        _root(parent, (i.operands[0].index, at))
        if i.operands[3].index != RZ:
            parent[_root(parent, (i.operands[0].index, at))] = _root(parent, _read(writes, i.operands[3], at))
    return {at: _root(parent, (i.operands[0].index, at)) for at, i in adds}


def _root(parent: dict[Value, Value], value: Value) -> Value:
    while parent.setdefault(value, value) != value:
        value = parent[value]
    return value


def _sides(step: Sequence[int], edges: Mapping[int, tuple[Value, Value]]) -> tuple[set[Value], set[Value]] | None:
    """Return the two sides of a step's graph; `None` if it is not bipartite.

    The first side contains the first factor of at least half of the multiply-adds.
    """
    beside: dict[Value, list[Value]] = {}
    for one, two in (edges[at] for at in step):
        beside.setdefault(one, []).append(two)
        beside.setdefault(two, []).append(one)
    first = edges[step[0]][0]
    side = {first: 0}
    waiting = [first]
    while waiting:
        here = waiting.pop()
        for other in beside[here]:
            if other not in side:
                side[other] = 1 - side[here]
                waiting.append(other)
            elif side[other] == side[here]:
                return None
    zero = {value for value, place in side.items() if place == 0}
    one_side = {value for value, place in side.items() if place == 1}
    leading = sum(edges[at][0] in zero for at in step)
    return (zero, one_side) if 2 * leading >= len(step) else (one_side, zero)


def _ordered(side: set[Value], instructions: Sequence[Instruction], banks: int) -> dict[Value, Factor]:
    """Return value -> factor for one side, sorted by address, then by register."""
    found = {value: _factor(value, instructions, banks) for value in side}
    return dict(sorted(found.items(), key=lambda item: (item[1].base, item[1].offset, item[1].register)))


def _factor(value: Value, instructions: Sequence[Instruction], banks: int) -> Factor:
    register, at = value
    read = () if at == _OUTSIDE else instructions[at].operands[1:]
    loaded = next((operand for operand in read if operand.kind == "mem"), None)
    if loaded is None:
        return Factor(register, register % banks, "", 0)
    terms = [f"{file}{index}" for file, index, none in (("R", loaded.base, RZ), ("UR", loaded.ubase, URZ))
             if index != none]  # fmt: skip
    offset = loaded.value + 4 * (register - instructions[at].operands[0].index)
    return Factor(register, register % banks, "+".join(terms), offset)
