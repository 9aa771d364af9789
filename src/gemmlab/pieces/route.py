"""The order of pieces, and the panels that each needs: a panel that is already in a slot is not copied again.

A strip is a row or a column of pieces, all with one panel, which stays on the device. The next strip's panel is copied
in parts beside all pieces of a strip, so that no piece waits for a whole panel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import NamedTuple

from gemmlab.dispatch.piece_plan import PiecePlan


class Load(NamedTuple):
    """A copy of panel number `panel` of an operand, or of a part of it, into that operand's slot number `slot`."""

    name: str
    """`"a"` or `"b"`."""
    panel: int
    slot: int
    part: int = 0
    """Index of the part, of `parts` parts of about as many rows each."""
    parts: int = 1


class Step(NamedTuple):
    """One piece: the slots of its panels and its result, and what must be copied beside the piece before it."""

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
    stays, passes = (lefts, rights) if plan.by_rows else (rights, lefts)
    of_strip, in_strip = (0, 1) if plan.by_rows else (1, 0)
    left = (place for place in plan.order() if place not in done)
    strips = [(panel, list(places)) for panel, places in groupby(left, key=lambda place: place[of_strip])]
    number = 0
    for strip, (panel, places) in enumerate(strips, 1):
        stay, first = stays.take(panel)
        parts = len(places) - 1
        ahead = stays.take(strips[strip][0])[1] if parts and strip < len(strips) else ()
        for index, place in enumerate(places):
            other, loads = passes.take(place[in_strip])
            beside = [load._replace(part=index - 1, parts=parts) for load in ahead] if index else first
            slots = (stay, other) if plan.by_rows else (other, stay)
            yield Step(*place, (*slots, number % rooms["c"].slots), (*loads, *beside) if plan.reads else ())
            number += 1
