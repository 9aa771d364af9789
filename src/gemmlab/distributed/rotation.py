"""An operand in rotation: each rank begins with its own part of k, while those of its neighbours travel to it.

    rank 0:   its own part   | panels of rank 1's | panels of rank 2's
    rank 1:   its own part   | panels of rank 2's | panels of rank 0's       -> turns
    rank 2:   its own part   | panels of rank 0's | panels of rank 1's

So no rank waits for the first panel, and the first product, which is the longest, hides the most messages. Each rank
adds in an order of its own: sums depend on the number of ranks.
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
    """The terms of k that a rank multiplies in one turn, and those that it sends meanwhile to another rank."""

    owner: int
    """The rank of the group whose part of k it is."""
    terms: range
    """Terms of k to multiply; empty if the owner has fewer panels than others."""
    receiver: int
    sent: range
    """Terms of this rank's own part."""


def turns_of(depth: int, ranks: int, own: int) -> list[Turn]:
    """Return the turns of rank `own`: as many on each rank, so that who sends and who receives go in step."""
    parts = [share(depth, ranks, index) for index in range(ranks)]
    turns = [Turn(own, parts[own], own, range(0))]
    # The first part is the longest one.
    count = -(-len(parts[0]) // panels.PANEL)
    for apart in range(1, ranks):
        owner, receiver = (own + apart) % ranks, (own - apart) % ranks
        for index in range(count):
            some = range(index * panels.PANEL, (index + 1) * panels.PANEL)
            terms, sent = (parts[rank][some.start : some.stop] for rank in (owner, own))
            turns.append(Turn(owner, terms, receiver, sent))
    return turns


class Rotation:
    """An operand whose k is cut between the ranks of `group`: `local` is what this rank has of it, k first."""

    def __init__(self, local: torch.Tensor, turns: list[Turn], group: Any, traffic: Traffic) -> None:
        self._local, self._turns, self._traffic = local, turns, traffic
        self._group = message_group(group)
        self._ranks = [dist.get_global_rank(group, index) for index in range(dist.get_world_size(group))]
        self._waiting = dict[int, tuple[torch.Tensor, torch.Tensor, list[Any]]]()

    def start(self, turn: int) -> None:
        """Begin to receive the panel of a turn, and to send one. The first turn needs no message."""
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
        """Return the panel of a turn, once it is there."""
        if turn == 0:
            return self._local
        panel, _, messages = self._waiting.pop(turn)
        for each in messages:
            each.wait()
        return panel
