"""Placement of a loop's other instructions among the FFMAs: integer work at the start of a step, copies in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gemmlab.core.errors import UsageError
from gemmlab.sass.rewriting.compiled_loop import DEPTH, CompiledLoop
from gemmlab.sass.rewriting.loop_words import NO_BARRIER, Word, control, with_registers
from gemmlab.sass.rewriting.register_cells import cells
from gemmlab.sass.rewriting.register_plan import Registers
from gemmlab.sass.rewriting.temporaries import Named

STEP = 128
"""Number of FFMAs in a step of k."""
GROUP, COPIES = 0, 1
"""Dependency barriers of the copies to shared memory.

`GROUP` is released when the copies are complete, `COPIES` when the last one has read its operands. Loads of constants
use `COPIES` too. If they come after the copies, the first instruction there waits for `COPIES` before.
"""
EVEN, ODD, EVEN_REST, ODD_REST = 2, 3, 4, 5
"""Dependency barriers of the loads of fragments for even and odd steps.

`EVEN` and `ODD` are released by the last load of a step. With `Variant.halves` they are released by the third load, and
`EVEN_REST` and `ODD_REST` by the last.
"""
_FIRST_COPY, _BETWEEN_COPIES = STEP + 72, 8
_WAIT = 6 * STEP + 96
"""Number of the FFMA before which a warp waits for its copies, and then at the barrier of the block."""
_MOST_TOGETHER = 12
"""Most other instructions in a row between two FFMAs."""
_APART = (STEP, STEP // 2, STEP // 4)
"""Numbers of FFMAs between dependent instructions, of which the first that fits is taken. Each is longer than any
latency. A whole step is best: the operand cache is empty at the start of a step anyway.
"""
_CONSTANTS = ("LDC", "ULDC")


@dataclass(slots=True)
class Places:
    """The instruction words among the FFMAs of an iteration, which are numbered from 0."""

    words: dict[int, list[Word]] = field(default_factory=dict)
    """Number of an FFMA -> words of the instructions before it. The number of all FFMAs stands for the loop's end."""
    emptied: set[int] = field(default_factory=set)
    """Numbers of the FFMAs right before which another instruction empties the operand cache."""

    def put(self, at: int, word: Word, *, empties: bool = False) -> None:
        self.words.setdefault(at, []).append(word)
        if empties:
            self.emptied.add(at)


class _Node:
    """An instruction, and the cells that it reads and writes after renaming."""

    def __init__(self, one: Named) -> None:
        self.instruction, self._names = one.instruction, (one.reads, one.writes)
        self.reads, self.writes = (
            {names.get(cell, cell) for cell in cells(one.instruction, writes=kind)}
            for kind, names in enumerate(self._names)
        )

    def word(self, codes: int) -> Word:
        return Word(with_registers(self.instruction, *self._names) | codes, self.instruction)

    def waits_for(self, earlier: _Node) -> bool:
        """Return whether this instruction reads or overwrites a result of `earlier`, so that its latency must pass."""
        return bool(earlier.writes & (self.reads | self.writes))

    def follows(self, earlier: _Node) -> bool:
        """Return whether this instruction must stay behind an earlier one."""
        return self.waits_for(earlier) or bool(earlier.reads & self.writes)


def placed(loop: CompiledLoop, plan: Registers) -> Places:
    """Return the places of `plan.others`, among them the loop's branch, and of the next stage's addresses.

    Raises `UsageError` if the loop has no LDGSTS or not exactly one LDGDEPBAR, DEPBAR, BAR and BRA, and if its
    instructions do not fit or depend on each other in another order.
    """
    places, nodes = Places(), [_Node(one) for one in plan.others]

    def pick(opcode: str) -> list[_Node]:
        found = [node for node in nodes if node.instruction.opcode == opcode and not node.instruction.is_idle]
        for node in found:
            nodes.remove(node)
        if not found:
            raise UsageError(f"{loop.function.name}: no {opcode} in its main loop")
        return found

    def pick_one(opcode: str) -> _Node:
        found = pick(opcode)
        if len(found) > 1:
            raise UsageError(f"{loop.function.name}: {len(found)} {opcode} in its main loop, not one")
        return found[0]

    before = _before_copies(loop, nodes)
    copies = pick("LDGSTS")
    group, waiting, barrier, back = (pick_one(name) for name in ("LDGDEPBAR", "DEPBAR", "BAR", "BRA"))
    for node in [node for node in nodes if node.instruction.is_idle]:
        nodes.remove(node)
        places.put(_FIRST_COPY, node.word(control()))
    rest = [node for node in nodes if node not in before]

    _put_levels(loop, places, before, 0, _FIRST_COPY - _APART[-1])
    for number, node in enumerate(copies):
        at = _FIRST_COPY + _BETWEEN_COPIES * number
        places.put(at, node.word(control(read=COPIES if node is copies[-1] else NO_BARRIER)))
    behind = _FIRST_COPY + _BETWEEN_COPIES * len(copies)
    places.put(behind, group.word(control(written=GROUP)))
    _put_levels(loop, places, rest, -(-behind // STEP) * STEP, _WAIT - _APART[-1], wait=1 << COPIES)
    places.put(_WAIT, waiting.word(control(4, stay=False)))
    places.put(_WAIT + 2, barrier.word(control(wait=1 << ODD | 1 << ODD_REST)))
    for address, base in ((plan.following_b, plan.base_b), (plan.following_a, plan.base_a)):
        _require_sources(loop, rest, address)
        (result,) = cells(address.instruction, writes=True)
        places.put(
            (DEPTH - 1) * STEP,
            Word(with_registers(address.instruction, address.reads, {result: base}) | control(), address.instruction),
            empties=True,
        )
    places.put(DEPTH * STEP, back.word(control(6)), empties=True)
    return places


def _require_sources(loop: CompiledLoop, rest: Iterable[_Node], address: Named) -> None:
    """Raise `UsageError` if one of `rest` overwrites a register that the next stage's address is computed from.

    `rest` are instructions that are placed before `address`, even those that come after it in the compiler's loop.
    """
    reads = {address.reads.get(cell, cell) for cell in cells(address.instruction, writes=False)}
    for node in rest:
        if node.instruction.address > address.instruction.address and node.writes & reads:
            raise UsageError(
                f"{loop.function.name}: {node.instruction.text} overwrites what {address.instruction.text} reads"
            )


def _before_copies(loop: CompiledLoop, nodes: Sequence[_Node]) -> list[_Node]:
    """Return the instructions that must stay before the copies to shared memory, in order.

    Raises `UsageError` if one of them overwrites a register that a copy before it in the compiler's loop reads.
    """
    wanted = [node for node in nodes if node.instruction.opcode == "LDGSTS"]
    found: list[_Node] = []
    for number, node in reversed([*enumerate(nodes)]):
        if node in wanted or node.instruction.is_idle:
            continue
        later = [other for other in (*wanted, *found) if other in nodes[number + 1 :]]
        if any(other.waits_for(node) for other in later) or any(other.follows(node) for other in found):
            found.append(node)
    for node in found:
        copies = [copy for copy in wanted if nodes.index(copy) < nodes.index(node)]
        if any(node.follows(copy) for copy in copies):
            raise UsageError(f"{loop.function.name}: {node.instruction.text} overwrites what an earlier copy reads")
    return found[::-1]


def _put_levels(
    loop: CompiledLoop, places: Places, nodes: Iterable[_Node], start: int, end: int, wait: int = 0
) -> None:
    """Put instructions into `places` between FFMAs `start` and `end`, dependent ones `_APART` FFMAs from each other.

    The first one waits for the barriers of the mask `wait`. Loads of constants release barrier `COPIES`, and what reads
    them waits for it. Raises `UsageError` if the instructions do not fit.
    """
    levels: list[list[_Node]] = []
    for node in nodes:
        earlier = [(other, number) for number, level in enumerate(levels) for other in level]
        least = max((number + node.waits_for(other) for other, number in earlier if node.follows(other)), default=0)
        while least < len(levels) and len(levels[least]) >= _MOST_TOGETHER:
            least += 1
        levels += [[] for _ in range(least + 1 - len(levels))]
        levels[least].append(node)
    apart = next((some for some in _APART if start + some * (len(levels) - 1) <= end), None)
    if apart is None:
        raise UsageError(
            f"{loop.function.name}: {len(levels)} instructions that depend on each other have no place between FFMAs "
            f"{start} and {end}"
        )
    constants = [node for level in levels for node in level if node.instruction.opcode in _CONSTANTS]
    for number, level in enumerate(levels):
        for node in level:
            awaits = wait | (1 << COPIES if any(node.waits_for(constant) for constant in constants) else 0)
            codes = control(wait=awaits, written=COPIES if node in constants else NO_BARRIER)
            places.put(start + apart * number, node.word(codes), empties=True)
            wait = 0
