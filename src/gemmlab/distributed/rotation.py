"""Rotation of an operand: each rank multiplies its own part of k first, then the parts of the ranks after it.

    rank 0:   own part   | panels of rank 1's part | panels of rank 2's part
    rank 1:   own part   | panels of rank 2's part | panels of rank 0's part       -> turns
    rank 2:   own part   | panels of rank 0's part | panels of rank 1's part

While a rank multiplies one panel, it receives the next. No rank waits for a first panel. Each rank adds its terms in a
different order, so the rounding of sums depends on the number of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from gemmlab.distributed import panels
from gemmlab.distributed.message_group import message_group
from gemmlab.distributed.placements import share
from gemmlab.distributed.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Turn:
    """The range of k that a rank multiplies in one turn, and the range that it sends to another rank for that turn."""

    owner: int
    """Rank within the group whose part of k contains `terms`."""
    terms: range
    """Range of k to multiply; empty if the owner has fewer panels than others."""
    receiver: int
    """Rank within the group that this rank sends to."""
    sent: range
    """Range of k, in this rank's own part, that it sends; empty if it has fewer panels than others."""


def turns_of(depth: int, ranks: int, own: int) -> list[Turn]:
    """Return the turns of rank `own` of `ranks`; `depth` is the extent of k. All ranks have the same number of turns,
    so sends and receives match by turn.
    """
    parts = [share(depth, ranks, index) for index in range(ranks)]
    turns = [Turn(own, parts[own], own, range(0))]
    # No part is longer than the first (`share`).
    count = -(-len(parts[0]) // panels.PANEL)
    for apart in range(1, ranks):
        owner, receiver = (own + apart) % ranks, (own - apart) % ranks
        for index in range(count):
            some = range(index * panels.PANEL, (index + 1) * panels.PANEL)
            terms, sent = (parts[rank][some.start : some.stop] for rank in (owner, own))
            turns.append(Turn(owner, terms, receiver, sent))
    return turns


class Rotation:
    """An operand whose k is cut between the ranks of `group`; `local` is this rank's part, k first."""

    def __init__(self, local: torch.Tensor, turns: list[Turn], group: Any, traffic: Traffic) -> None:
        self._local, self._turns, self._traffic = local, turns, traffic
        self._group = message_group(group)
        self._ranks = [dist.get_global_rank(group, index) for index in range(dist.get_world_size(group))]
        self._waiting = dict[int, tuple[torch.Tensor, torch.Tensor, list[Any]]]()

    def start(self, turn: int) -> None:
        """Begin to receive a turn's panel and to send one to another rank. The first turn needs no message."""
        if turn == 0:
            return
        now, own = self._turns[turn], self._turns[0].terms
        panel = self._local.new_empty((len(now.terms), self._local.shape[1]))
        sent = self._local[now.sent.start - own.start : now.sent.stop - own.start].contiguous()
        messages = []
        if sent.numel():
            messages.append(dist.P2POp(dist.isend, sent, self._ranks[now.receiver], self._group))
        if panel.numel():
            messages.append(dist.P2POp(dist.irecv, panel, self._ranks[now.owner], self._group))
        self._waiting[turn] = (panel, sent, dist.batch_isend_irecv(messages) if messages else [])
        self._traffic.received += panel.numel() * panel.element_size()
        self._traffic.hold((panel,) if self._local.is_contiguous() else (panel, sent))

    def take(self, turn: int) -> torch.Tensor:
        """Wait for the panel of a turn and return it."""
        if turn == 0:
            return self._local
        panel, _, messages = self._waiting.pop(turn)
        for each in messages:
            each.wait()
        return panel
