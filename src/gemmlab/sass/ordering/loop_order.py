"""A new order of a block's instructions: adjacent FFMAs share operands, and memory accesses are spread among them.

The idea is that of S. Gray's maxas. Adjacent FFMAs share an operand, so that the second reads it from the operand
cache. A memory instruction is issued every few FFMAs; there it costs one issue slot and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.sass.checking.reuse import sources
from gemmlab.sass.checking.steps import Step
from gemmlab.sass.ordering.dependences import is_ordered, predecessors

_ARITHMETIC = "FFMA"
_WINDOW = 48
"""Indices from the first ready FFMA within which the next FFMA is chosen.

If one from further behind came first, earlier ones would be left over, and the next step's loads would wait for their
registers.
"""
_APART = 4
"""Issue slots from an instruction to an FFMA that reads its result, such as the sum, so that it does not wait."""


@dataclass(slots=True)
class _Front:
    """The state after the instructions that are ordered already."""

    cached: dict[int, int]
    """Operand place (0, 1 or 2) -> register that the last FFMA read there."""
    issued: dict[int, int]
    """Register or predicate, as a cell -> issue slot of the last instruction that writes it."""
    since_other: int = 0
    """FFMAs since the last instruction that is not an FFMA."""
    slot: int = 0
    """Number of instructions ordered so far."""


def new_order(steps: Sequence[Step], *, by_operands: bool, spread: bool) -> list[int]:
    """Return the order of a block's instructions: element i is the old index of the instruction at new index i.

    `by_operands`: choose FFMAs by shared operands; `spread`: space all other instructions evenly among the FFMAs. If
    both are false, the order does not change.
    """
    before = predecessors(steps)
    after: list[list[int]] = [[] for _ in steps]
    for number, some in enumerate(before):
        for earlier in some:
            after[earlier].append(number)
    missing = [len(some) for some in before]
    ready = [number for number, count in enumerate(missing) if not count]
    ffmas = sum(step.instruction.opcode == _ARITHMETIC for step in steps)
    others = len(steps) - ffmas
    spacing = ffmas / others if others and spread else 0.0
    front = _Front({}, {})
    order: list[int] = []
    while ready:
        chosen = _next(steps, ready, front, spacing=spacing, by_operands=by_operands)
        ready.remove(chosen)
        order.append(chosen)
        _issue(steps[chosen], front)
        for later in after[chosen]:
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
    return order


def _next(steps: Sequence[Step], ready: Sequence[int], front: _Front, *, spacing: float, by_operands: bool) -> int:
    arithmetic = [number for number in ready if steps[number].instruction.opcode == _ARITHMETIC]
    others = [number for number in ready if steps[number].instruction.opcode != _ARITHMETIC]
    if not arithmetic:
        return min(others)
    if spacing:
        if others and front.since_other >= spacing:
            return min(others, key=lambda number: (not is_ordered(steps[number]), number))
    elif others and min(others) < min(arithmetic):
        # Without spreading, an instruction that was before the next FFMA stays before it.
        return min(others)
    if not by_operands:
        return min(arithmetic)
    first = min(arithmetic)
    near = [number for number in arithmetic if number < first + _WINDOW]
    return max(near, key=lambda number: (_score(steps[number], front), -number))


def _score(step: Step, front: _Front) -> int:
    """Return a score: the registers shared with the last FFMA in places 0 and 1, less 8 if a source is not ready."""
    shared = sum(front.cached.get(place) == operand.index for place, operand in sources(step.instruction) if place < 2)
    waits = any(front.slot - front.issued.get(cell, -_APART) < _APART for cell, _ in step.reads)
    return shared - 8 * waits


def _issue(step: Step, front: _Front) -> None:
    front.slot += 1
    if step.instruction.opcode == _ARITHMETIC:
        front.cached = {place: operand.index for place, operand in sources(step.instruction)}
        front.since_other += 1
    else:
        front.since_other = 0
    for cell in step.writes:
        front.issued[cell] = front.slot
