"""Panels of an operand along k, sent by the ranks that have them while other panels are multiplied.

A panel is PANEL terms of k, wherever the operand is cut, so that the order of each sum does not depend on the number of
ranks. In memory k comes first: then the part of a panel that one rank sends is contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

from gemmlab.distributed.message_group import message_group
from gemmlab.distributed.placements import share
from gemmlab.distributed.traffic import Traffic

PANEL = 4096
"""Terms of k. Each panel's product reads and writes C once more, so there are few."""


class Panels:
    """The panels of one operand, in turn: `local` is what this rank has of it, k along the first axis.

    `group` are the ranks that the operand's k is cut between; `None` if this rank has all of it.
    """

    def __init__(self, local: torch.Tensor, depth: int, group: Any, traffic: Traffic) -> None:
        self._local, self._depth, self._group, self._traffic = local, depth, group, traffic
        self._beside = None if group is None else message_group(group)
        self._waiting = dict[int, tuple[torch.Tensor, list[Any]]]()

    @property
    def travels(self) -> bool:
        """True if panels come from other ranks."""
        return self._group is not None

    @property
    def width(self) -> int:
        """Rows of A or columns of B that this rank has."""
        return int(self._local.shape[1])

    def start(self, first: int) -> None:
        """Begin to send the panel that begins at k = `first`, if there is one. All ranks of the group call it.

        Nothing is multiplied while the first panel travels, so it may take as many multiprocessors as it likes.
        """
        if first >= self._depth:
            return
        terms = range(first, min(first + PANEL, self._depth))
        if self._group is None:
            self._waiting[first] = (self._local[terms.start : terms.stop], [])
            return
        panel = self._local.new_empty((len(terms), self._local.shape[1]))
        group = self._beside if first else self._group
        sent = [dist.broadcast(part, root, group=group, async_op=True) for part, root in self._parts(panel, terms)]
        self._waiting[first] = (panel, sent)
        size = sum(each.numel() * each.element_size() for each, _ in self._waiting.values())
        self._traffic.largest_buffer = max(self._traffic.largest_buffer, size)

    def take(self, first: int) -> torch.Tensor:
        """Return the panel that begins at k = `first`, once it is there."""
        panel, sent = self._waiting.pop(first)
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
