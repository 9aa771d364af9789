"""The order of pieces, and the panels that each needs: a panel that is already in a slot is not copied again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from gemmlab.dispatch.piece_plan import PiecePlan


class Load(NamedTuple):
    """A copy of panel number `panel` of an operand into that operand's slot number `slot`."""

    name: str
    """`"a"` or `"b"`."""
    panel: int
    slot: int


class Step(NamedTuple):
    """One piece: the slots of its panels and its result, and the panels that must be copied first."""

    row: int
    col: int
    slots: tuple[int, int, int]
    """Numbers of the slots of the panel of A, of the panel of B, and of the piece of C."""
    loads: tuple[Load, ...]


class _Slots:
    """The panels of one operand in memory. A new panel replaces the least recently used one."""

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._panels = [-1] * count
        self._order = list(range(count))
        """Slots, the most recently used one at the end."""

    def take(self, panel: int) -> tuple[int, tuple[Load, ...]]:
        """Return the slot of a panel, and its load if it is not in memory yet."""
        found = self._panels.index(panel) if panel in self._panels else -1
        slot = self._order[0] if found < 0 else found
        self._order.remove(slot)
        self._order.append(slot)
        self._panels[slot] = panel
        return slot, () if found >= 0 else (Load(self._name, panel, slot),)


def route(plan: PiecePlan, done: Collection[tuple[int, int]] = ()) -> Iterator[Step]:
    """Yield the steps of a product in the order of its plan, without those of the pieces (row, column) in `done`."""
    rooms = plan.rooms
    lefts, rights = (_Slots(name, rooms[name].slots) for name in "ab")
    number = 0
    for row, col in plan.order():
        if (row, col) in done:
            continue
        (a, load_a), (b, load_b) = lefts.take(row), rights.take(col)
        yield Step(row, col, (a, b, number % rooms["c"].slots), (*load_a, *load_b) if plan.reads else ())
        number += 1
