"""Panels that the ranks of one host copy into each other's GPU memory, while earlier panels are multiplied.

    rank 0   copies     | panel 0 | panel 1 |          | panel 2 |            | panel 3
             products             | panel 0            | panel 1              | panel 2
                                                       ^ the receiver has finished panel 0, whose slot panel 2 takes

A rank sends its part of each panel to each rank that reads it, itself too, as soon as that rank can receive it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.distributed.panels import Panel, common
from gemmlab.distributed.peer_memory import SLOTS, Rectangle
from gemmlab.distributed.traffic import Traffic


class PeerPanels:
    """The panels of an operand whose k is cut between ranks with a common `memory` (`PeerMemory`).

    `panels` has a list for each rank, of the panels that it receives, and all lists are equally long. `shares` has the
    terms of each rank, `local` is this rank's part, k first. Of B (`of_a` false) a panel has a row for each term of k;
    of A (`of_a` true) a row for each line, as the operand has. `begun` is an event after which `local` is complete.
    """

    def __init__(
        self, local: torch.Tensor, shares: Sequence[range], panels: Sequence[Sequence[Panel]], memory: Any,
        traffic: Traffic, begun: Any, *, of_a: bool,
    ) -> None:  # fmt: skip
        rows = local.t() if of_a else local
        self._rows = rows if rows.stride(1) == 1 or rows.numel() == 0 else rows.contiguous()
        self._own, self._panels, self._of_a = shares[memory.own], panels, of_a
        self._memory, self._traffic = memory, traffic
        memory.reserve(max(len(one.terms) * len(one.lines) for each in panels for one in each) * FLOAT_BYTES)
        self._first = memory.count
        memory.count += len(panels[memory.own])
        memory.open(self._first + SLOTS, begun)

    def start(self, turn: int) -> None:
        """Send this rank's part of the turn's panel of each rank, once that rank has finished the panel before in the
        same slot.
        """
        memory, number = self._memory, self._first + turn
        own = self._own
        for apart in range(1, memory.ranks + 1):
            rank = (memory.own + apart) % memory.ranks
            now = self._panels[rank][turn]
            part = common(own, now.terms)
            memory.await_ready(rank, number + 1)
            # Copies within a GPU run on its multiprocessors, between two products: only what is read is copied.
            if now.lines and any(common(part, each) for each in now.read):
                at = range(part.start - own.start, part.stop - own.start)
                memory.send(rank, number, *self._piece(now, at, part.start - now.terms.start))
            memory.tell_arrived(rank, number + 1)
        now = self._panels[memory.own][turn]
        self._traffic.received += (len(now.terms) - len(common(own, now.terms))) * len(now.lines) * FLOAT_BYTES

    def take(self, turn: int) -> torch.Tensor:
        """Make the current stream wait for the panel of a turn, and return it."""
        now, number = self._panels[self._memory.own][turn], self._first + turn
        self._memory.await_arrived(number + 1)
        shape = (len(now.lines), len(now.terms)) if self._of_a else (len(now.terms), len(now.lines))
        found: torch.Tensor = self._memory.slot(number, shape)
        self._traffic.hold([found] * SLOTS)
        return found.t() if self._of_a else found

    def finish(self, turn: int) -> None:
        """Let all ranks write over the panel after the work that the current stream has now."""
        self._memory.tell_ready(self._first + turn + 1 + SLOTS)

    def _piece(self, now: Panel, at: range, skipped: int) -> tuple[int, int, Rectangle]:
        """Return where this rank's terms `at` of a panel lie in the slot (byte offset, pitch), and in this rank's part
        of the operand. `skipped` terms of the panel come before them.
        """
        pitch = self._rows.stride(0) * FLOAT_BYTES
        if self._of_a:
            row, column, into = now.lines.start, at.start, len(now.terms) * FLOAT_BYTES
            offset, width, height = skipped * FLOAT_BYTES, len(at) * FLOAT_BYTES, len(now.lines)
        else:
            row, column, into = at.start, now.lines.start, len(now.lines) * FLOAT_BYTES
            offset, width, height = skipped * into, len(now.lines) * FLOAT_BYTES, len(at)
        address = self._rows.data_ptr() + row * pitch + column * FLOAT_BYTES
        return offset, into, Rectangle(address, max(pitch, width), width, height)
