"""Panels of an operand along k, which their owners broadcast while other panels are multiplied.

The order of panels is the same on all ranks, and a panel is PANEL terms of k no matter where the operand is cut: so the
order of each sum does not depend on the number of ranks. k is the first axis in memory, so the part of a panel that one
rank sends is contiguous.
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
"""Terms of k in a panel. Panels are long, because each panel's product after the first reads and writes C once more."""


class Source(Protocol):
    """An operand that is read in panels; the panel of each turn is fixed beforehand."""

    def start(self, turn: int) -> None:
        """Begin the transfer of a turn's panel. All ranks of the group call this, in the order of turns."""

    def take(self, turn: int) -> torch.Tensor:
        """Wait for the panel of a turn and return it. Its first axis is k, its second the rows of A or columns of B."""


def panels_of(depth: int) -> list[range]:
    """Return the range of k of each panel, in order; `depth` is the extent of k."""
    return [range(first, min(first + PANEL, depth)) for first in range(0, depth, PANEL)]


class Whole:
    """An operand whose k is not cut: this rank has every panel already."""

    def __init__(self, local: torch.Tensor, terms: Sequence[range]) -> None:
        self._local, self._terms = local, terms

    def start(self, turn: int) -> None:
        """Do nothing: this rank has the panel."""

    def take(self, turn: int) -> torch.Tensor:
        """Return a view of the turn's terms."""
        terms = self._terms[turn]
        return self._local[terms.start : terms.stop]


class Panels:
    """The panels of an operand whose k is cut between the ranks of `group`; `local` is this rank's part, k first."""

    def __init__(self, local: torch.Tensor, depth: int, group: Any, traffic: Traffic) -> None:
        self._local, self._depth, self._group, self._traffic = local, depth, group, traffic
        self._terms = panels_of(depth)
        self._beside = message_group(group)
        self._waiting = dict[int, tuple[torch.Tensor, list[Any]]]()

    def start(self, turn: int) -> None:
        """Begin to broadcast a panel.

        Nothing is multiplied while the first panel is sent, so the mesh's own group, which takes more multiprocessors,
        sends it.
        """
        terms = self._terms[turn]
        panel = self._local.new_empty((len(terms), self._local.shape[1]))
        group = self._beside if turn else self._group
        sent = [dist.broadcast(part, root, group=group, async_op=True) for part, root in self._parts(panel, terms)]
        self._waiting[turn] = (panel, sent)
        self._traffic.hold(each for each, _ in self._waiting.values())

    def take(self, turn: int) -> torch.Tensor:
        """Wait for the panel of a turn and return it."""
        panel, sent = self._waiting.pop(turn)
        for each in sent:
            each.wait()
        return panel

    def _parts(self, panel: torch.Tensor, terms: range) -> Iterator[tuple[torch.Tensor, int]]:
        """Yield (part of `panel` that one rank owns, global rank of the owner); the owner's part is copied in here."""
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
