"""One mbarrier: the phase, the arrivals and bytes that it waits for, and who waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gemmlab.core.words import counted
from gemmlab.emulator.asynchronous.block_state import BlockState, Clocks
from gemmlab.emulator.asynchronous.byte_counts import report_too_few
from gemmlab.emulator.asynchronous.host_words import narrow, put_narrow, put_wide, wide
from gemmlab.emulator.asynchronous.mbarrier_phase import Phase
from gemmlab.emulator.asynchronous.mbarrier_word import Word
from gemmlab.emulator.layout import LANES, Wait, Warp
from gemmlab.emulator.loop import GROUP_ARGUMENT, GROUP_WAIT, RELEASED

if TYPE_CHECKING:
    from gemmlab.emulator.asynchronous.copies import Copy


@dataclass(slots=True)
class Mbarrier:
    """An initialised mbarrier of a block."""

    block: BlockState
    address: int
    word: Word
    site: int
    """Index of the instruction that initialised it; on sm_80, of the first arrival."""
    warp: int
    """Index of the warp that initialised it; on sm_80, of the one that arrived first."""
    clock: int
    """Clock of `warp` at the initialisation; 0 on sm_80, where it is not known."""
    cluster_time: int = 0
    """Number of phases of the cluster's barrier that were complete at the initialisation."""
    completed: int = 0
    """Number of phases that have ended."""
    copies: list[Copy] = field(default_factory=list, repr=False)
    """Copies whose bytes it will receive, in the order of their issue."""
    arriving: Clocks = field(default_factory=lambda: np.zeros((1, LANES), np.int32), repr=False)
    """Maximum of the vector clocks of the arrivals, and of the issuers of completed copies, so far."""
    released: Clocks = field(default_factory=lambda: np.zeros((1, LANES), np.int32), repr=False)
    """`arriving` at the end of the most recent complete phase; warps take it over at a successful wait."""
    now: Phase = field(default_factory=Phase)
    """The record of the current phase."""
    before: Phase = field(default_factory=Phase)
    """The record of the phase before it."""
    waiting: list[int] = field(default_factory=list)
    """Host addresses of warps with a group that waits for it."""
    last: int = -1
    """Index of the instruction of the most recent arrival; -1 if there was none."""
    sites: dict[int, None] = field(default_factory=dict)
    """Indices of the instructions that have arrived, in the order of their first arrivals (an ordered set)."""
    tests: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Index of a warp -> its latest successful test: (index of the instruction, parity, phases ended by then)."""

    def store(self) -> None:
        """Write the word to shared memory."""
        at = self.block.offset(self.address)
        cell, word = self.block.resident.shared[at : at + 8].view(np.uint64), self.word.encoded()
        self.block.resident.valid[at : at + 8] = 0xFF
        if int(cell[0]) != word:
            cell[0] = word
            self.block.changed()

    @property
    def intact(self) -> bool:
        """True if its word in shared memory is what the last operation left."""
        at = self.block.offset(self.address)
        return int(self.block.resident.shared[at : at + 8].view(np.uint64)[0]) == self.word.encoded()

    def settle(self, *, for_wait: bool = False) -> None:
        """End the phase if nothing is missing.

        Copies are completed only if the phase needs them and a thread waits for it (`for_wait`: the caller does). That
        is the latest moment that the waits allow.
        """
        if self.word.pending == 0 and self.word.transactions > 0 and (for_wait or self.waiting):
            while self.copies and self.word.transactions > 0:
                self.copies[0].land()
        if self.word.pending == 0 and self.word.transactions == 0:
            if late := [copy for copy in self.copies if copy.phase == self.completed]:
                report_too_few(self, late)
            self.word.phase ^= 1
            self.word.pending = self.word.expected
            self.completed += 1
            self.released = self.arriving.copy()
            self.before, self.now = self.now, Phase()
            self._wake()
        self.store()

    def _wake(self) -> None:
        for warp in self.waiting:
            for index in range(wide(warp + Warp.GROUPS)):
                group = warp + Warp.GROUP + index * Warp.GROUP_SIZE
                here = wide(group + GROUP_ARGUMENT) == self.address
                if here and narrow(group + GROUP_WAIT) == Wait.MBARRIER:
                    put_narrow(group + GROUP_WAIT, Wait.READY)
                    put_wide(group + GROUP_ARGUMENT, RELEASED)
        self.waiting.clear()

    @property
    def lacks(self) -> str:
        """Words for the arrivals and bytes that the current phase still waits for; `"nothing"` if for none."""
        parts = []
        if self.word.pending:
            parts.append(f"{self.word.pending} of {counted(self.word.expected, 'arrival')}")
        if self.word.transactions > 0:
            parts.append(f"{counted(self.word.transactions, 'byte')} that were expected")
        if self.word.transactions < 0:
            parts.append(f"{counted(-self.word.transactions, 'byte')} to be expected, for it got more than it was told")
        return " and ".join(parts) or "nothing"

    @property
    def name(self) -> str:
        """Its place in words: `mbarrier full[1]`, `mbarrier full[1] of block 1 of the cluster`."""
        return f"mbarrier {self.block.resident.geometry.shared_word(self.address)}"

    def describe(self) -> str:
        """Return the state in words: `"the mbarrier full[1] (phase 2, parity 0) lacks 1 of 128 arrivals"`."""
        return f"the {self.name} (phase {self.completed}, parity {self.word.phase}) lacks {self.lacks}"
