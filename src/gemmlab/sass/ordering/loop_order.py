"""Another order of a block: FFMAs by the operands that they share, memory accesses spread among them.

The idea is that of S. Gray's maxas: walk the tile of results so that neighbours share an operand, which the operand
cache then holds, and issue a memory instruction every few FFMAs, where it costs one issue slot and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.sass.checking.reuse import sources
from gemmlab.sass.checking.steps import Step
from gemmlab.sass.ordering.dependences import is_ordered, predecessors

_ARITHMETIC = "FFMA"
_WINDOW = 48
"""The most places that an FFMA is drawn forward: further, and a load for the next step waits for its registers."""
_APART = 4
"""Issue slots that a sum needs before the next FFMA adds to it."""


@dataclass(slots=True)
class _Front:
    """The instruction that was issued last."""

    cached: dict[int, int]
    """Register by place of the last FFMA."""
    issued: dict[int, int]
    """Slot in which each cell was written last."""
    since_other: int = 0
    slot: int = 0


def new_order(steps: Sequence[Step], *, by_operands: bool, spread: bool) -> list[int]:
    """Return the order of a block's instructions: the old index at each new place.

    `by_operands`: choose FFMAs by shared operands; `spread`: space everything else evenly among the FFMAs. Without
    both, the order is as it was.
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
        # Without spreading, whatever was before the next FFMA stays before it.
        return min(others)
    if not by_operands:
        return min(arithmetic)
    first = min(arithmetic)
    near = [number for number in arithmetic if number < first + _WINDOW]
    return max(near, key=lambda number: (_score(steps[number], front), -number))


def _score(step: Step, front: _Front) -> int:
    """Prefer shared operands; avoid a sum that was just added to."""
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
