"""The sources of a product's panels: of each operand, and of memory that ranks have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gemmlab.distributed.panel_turns import Turn
from gemmlab.distributed.panels import Panel, Panels, Source, Whole
from gemmlab.distributed.peer_memory import PeerMemory, peer_memory
from gemmlab.distributed.peer_panels import PeerPanels
from gemmlab.distributed.traffic import Traffic


def common_memory(groups: tuple[Any, Any], device: torch.device) -> PeerMemory | None:
    """Return the memory for panels that a group of ranks shares; `None` if there is none. `groups` are those among
    whose ranks k of A and of B is cut, or `None`.
    """
    travels = [group for group in groups if group is not None]
    # If both operands are sent, each with a group of its own, their copies would need two sets of slots.
    return peer_memory(travels[0], device) if len(travels) == 1 else None


def sources_of(
    local: tuple[torch.Tensor, torch.Tensor],
    groups: tuple[Any, Any],
    shares: tuple[Sequence[range], Sequence[range]],
    turns: list[list[Turn]],
    rank: int,
    traffic: Traffic,
    begun: Any,
    memory: PeerMemory | None,
) -> list[Source]:
    """Return the sources of the panels of A and B.

    `local` are this rank's parts of A and B, k first; `groups` the ranks among which k of A and B is cut, or `None`;
    `shares` the terms of each of these ranks. `turns` are those with panels of all ranks, `rank` is this one. `begun`
    is an event after which the local parts are complete; `None` on a CPU. `memory` is that of `common_memory`.
    """
    panels = (
        [[Panel(turn.terms, turn.rows, turn.parts) for turn in each] for each in turns],
        [[Panel(turn.terms, turn.columns, turn.parts) for turn in each] for each in turns],
    )

    def source(number: int) -> Source:
        each, group, some = local[number], groups[number], panels[number]
        if group is None:
            return Whole(each, some[rank])
        if memory is not None:
            return PeerPanels(each, shares[number], some, memory, traffic, begun, of_a=number == 0)
        return Panels(each, shares[number], some[rank], group, traffic)

    return [source(0), source(1)]
