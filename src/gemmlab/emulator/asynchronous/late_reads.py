"""Reads of shared memory before a bulk copy has completed there: which copy, and which wait came before.

A bulk copy counts at an mbarrier. `hazard_words` describes other asynchronous copies.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.copies import Copy
from gemmlab.emulator.asynchronous.finding import COPY, Finding, Findings
from gemmlab.emulator.hazard_order import Rank
from gemmlab.emulator.instruction_layout import Event, Kind, Space
from gemmlab.emulator.layout import LANES


def explain(block: BlockState, events: npt.NDArray[np.int64], findings: Findings) -> None:
    """Add a finding for each event of a block that is a read of shared memory before a bulk copy to it was complete.

    Copies that are no longer in `BlockState.history` are left out.
    """
    for event in events:
        kind, site, _other, linear, thread, address, extra = (int(field) for field in event[: Event.EXTRA // 8 + 1])
        if kind != Kind.ASYNC or linear != block.linear or extra >> 16 & 0xFF != Space.SHARED:
            continue
        copy = _copy(block, address)
        if copy is not None:
            message, other = _words(copy, thread // LANES)
            findings.add(Finding(COPY, message, linear, thread, site, other, address, order=Rank.EARLY))


def _copy(block: BlockState, address: int) -> Copy | None:
    """Return the most recently issued bulk copy to a shared address; `None` if `BlockState.history` has none."""
    index = block.offset(address)
    for copy in reversed(block.history):
        places = copy.places
        if isinstance(places, slice) and places.start <= index < places.stop:
            return copy
        if not isinstance(places, slice) and (places == index).any():
            return copy
    return None


def _words(copy: Copy, warp: int) -> tuple[str, int]:
    """Return the error in words, and the index of the other instruction: the copy, or a wait for another phase."""
    what = "shared memory is read that a bulk copy has not brought yet"
    test = copy.mbarrier.tests.get(warp)
    if test is None:
        return f"{what}: the thread has not waited for its {copy.mbarrier.name}", copy.site
    site, parity, _completed = test
    if parity == copy.parity:
        return f"{what}: the last wait for its mbarrier was for an earlier phase of parity {parity}", site
    return (
        f"{what}: the wait before tested parity {parity}, and the copy belongs to the phase of parity {copy.parity}",
        site,
    )
