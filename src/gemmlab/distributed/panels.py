"""Panels of an operand along k, sent by the ranks that have them while other panels are multiplied.

Here the order is the same on all ranks: a panel is PANEL terms of k, wherever the operand is cut, so that the order of
each sum does not depend on the number of ranks. In memory k comes first: then the part of a panel that one rank sends
is contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
import torch.distributed as dist

from gemmlab.distributed.message_group import message_group
from gemmlab.distributed.placements import share
from gemmlab.distributed.traffic import Traffic

PANEL = 4096
"""Terms of k. Each panel's product reads and writes C once more, so there are few."""


class Source(Protocol):
    """An operand, panel after panel, in an order that was agreed on beforehand."""

    def start(self, turn: int) -> None:
        """Begin to send the panel of a turn. All ranks of the group call it, in the order of turns."""

    def take(self, turn: int) -> torch.Tensor:
        """Return the panel of a turn, once it is there."""


def panels_of(depth: int) -> list[range]:
    """Return the panels of k, in order."""
    return [range(first, min(first + PANEL, depth)) for first in range(0, depth, PANEL)]


class Whole:
    """An operand of which this rank has all of k."""

    def __init__(self, local: torch.Tensor, terms: Sequence[range]) -> None:
        self._local, self._terms = local, terms

    def start(self, turn: int) -> None:
        """Do nothing: the panel is there."""

    def take(self, turn: int) -> torch.Tensor:
        """Return the part of the operand."""
        terms = self._terms[turn]
        return self._local[terms.start : terms.stop]


class Panels:
    """The panels of an operand whose k is cut between the ranks of `group`: `local` is what this rank has of it."""

    def __init__(self, local: torch.Tensor, depth: int, group: Any, traffic: Traffic) -> None:
        self._local, self._depth, self._group, self._traffic = local, depth, group, traffic
        self._terms = panels_of(depth)
        self._beside = message_group(group)
        self._waiting = dict[int, tuple[torch.Tensor, list[Any]]]()

    def start(self, turn: int) -> None:
        """Begin to send a panel.

        Nothing is multiplied while the first panel travels, so it may take as many multiprocessors as it likes.
        """
        terms = self._terms[turn]
        panel = self._local.new_empty((len(terms), self._local.shape[1]))
        group = self._beside if turn else self._group
        sent = [dist.broadcast(part, root, group=group, async_op=True) for part, root in self._parts(panel, terms)]
        self._waiting[turn] = (panel, sent)
        self._traffic.hold(each for each, _ in self._waiting.values())

    def take(self, turn: int) -> torch.Tensor:
        """Return a panel, once it is there."""
        panel, sent = self._waiting.pop(turn)
        for each in sent:
            each.wait()
        return panel

    def _parts(self, panel: torch.Tensor, terms: range) -> Iterator[tuple[torch.Tensor, int]]:
        """Yield each rank's part of a panel, filled in on the rank that has it, and that rank."""
        ranks, own = dist.get_world_size(self._group), dist.get_rank(self._group)
        for index in range(ranks):
            theirs = share(self._depth, ranks, index)
            part = range(max(theirs.start, terms.start), min(theirs.stop, terms.stop))
            if not part:
                continue
            into = panel[part.start - terms.start : part.stop - terms.start]
            if index == own:
                into.copy_(self._local[part.start - theirs.start : part.stop - theirs.start])
            else:
                self._traffic.received += into.numel() * into.element_size()
            if into.numel():
                yield into, dist.get_global_rank(self._group, index)
