"""Panels of an operand: the parts that are sent while other parts are multiplied.

In each turn (`panel_turns.py`) a product needs one panel of each operand. An operand that a rank has is `Whole`;
`Panels` are broadcast by their owners, and `PeerPanels` (`peer_panels.py`) are copied from GPU to GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.distributed as dist

from gemmlab.distributed.message_group import message_group
from gemmlab.distributed.traffic import Traffic

WORDS = 1 << 27
"""Most elements of a panel if one operand is sent: 512 MiB of float32."""
DEPTH = 32768
"""Most terms of k in a panel that has some lines only, which are columns of B or rows of A. Each further panel of the
same lines reads and writes a part of C once more.
"""
PANEL = 4096
"""Terms of k in a panel that has all lines, if both operands are sent or if sums must have one order on any number of
ranks. It determines the order of sums, and does not depend on the number of ranks.
"""


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of an operand: `terms` of k, and `lines`, which are rows of A or columns of B, within this rank's part."""

    terms: range
    lines: range
    read: tuple[range, ...]
    """The terms that this rank multiplies. It has multiplied the others before."""


class Source(Protocol):
    """An operand that is read in panels; the panel of each turn is fixed beforehand.

    All ranks of the group call the methods in the order of turns: `start`, `take`, `finish`. The next turn may be
    started before a turn is finished.
    """

    def start(self, turn: int) -> None:
        """Begin the transfer of a turn's panel."""

    def take(self, turn: int) -> torch.Tensor:
        """Return the panel of a turn, which arrives before later work on the current stream begins. Its first axis is
        k, its second the lines.
        """

    def finish(self, turn: int) -> None:
        """Allow the panel's memory to be written again after the work that the current stream has now."""


class Whole:
    """An operand whose k is not cut: this rank has every panel already. `local` has k as its first axis."""

    def __init__(self, local: torch.Tensor, panels: Sequence[Panel]) -> None:
        self._local, self._panels = local, panels

    def start(self, turn: int) -> None:
        """Do nothing: this rank has the panel."""

    def take(self, turn: int) -> torch.Tensor:
        """Return a view of the turn's panel."""
        terms, lines = self._panels[turn].terms, self._panels[turn].lines
        return self._local[terms.start : terms.stop, lines.start : lines.stop]

    def finish(self, turn: int) -> None:
        """Do nothing: nothing is written over the panel."""


class Panels:
    """The panels of an operand whose k is cut between the ranks of `group`; `local` is this rank's part, k first, and
    `shares` are the terms of each.

    k is the first axis in memory too, so the part of a panel that one rank broadcasts is contiguous.
    """

    def __init__(
        self, local: torch.Tensor, shares: Sequence[range], panels: Sequence[Panel], group: Any, traffic: Traffic
    ) -> None:  # fmt: skip
        self._local, self._shares, self._panels, self._group, self._traffic = local, shares, panels, group, traffic
        self._beside = message_group(group, local.device)
        self._waiting = dict[int, tuple[torch.Tensor, list[Any]]]()

    def start(self, turn: int) -> None:
        """Begin to broadcast a panel.

        While the first panel is sent, nothing but the rank's own terms is multiplied. So the mesh's own group, which
        takes more multiprocessors, sends it.
        """
        now = self._panels[turn]
        panel = self._local.new_empty((len(now.terms), len(now.lines)))
        group = self._beside if turn else self._group
        sent = [dist.broadcast(part, root, group=group, async_op=True) for part, root in self._parts(panel, now)]
        self._waiting[turn] = (panel, sent)
        self._traffic.hold(each for each, _ in self._waiting.values())

    def take(self, turn: int) -> torch.Tensor:
        """Wait for the panel of a turn and return it."""
        panel, sent = self._waiting[turn]
        for each in sent:
            each.wait()
        return panel

    def finish(self, turn: int) -> None:
        """Release the panel's memory, which torch gives to later work of the same stream."""
        del self._waiting[turn]

    def _parts(self, panel: torch.Tensor, now: Panel) -> Iterator[tuple[torch.Tensor, int]]:
        """Yield (part of `panel` that one rank owns, global rank of the owner); the owner's part is copied in here."""
        own = dist.get_rank(self._group)
        for index, theirs in enumerate(self._shares):
            part = common(theirs, now.terms)
            if not part:
                continue
            into = panel[part.start - now.terms.start : part.stop - now.terms.start]
            if index == own:
                rows = self._local[part.start - theirs.start : part.stop - theirs.start]
                into.copy_(rows[:, now.lines.start : now.lines.stop])
            else:
                self._traffic.received += into.numel() * into.element_size()
            if into.numel():
                yield into, dist.get_global_rank(self._group, index)


def common(one: range, other: range) -> range:
    """Return what two ranges of step 1 have in common."""
    return range(max(one.start, other.start), min(one.stop, other.stop))
