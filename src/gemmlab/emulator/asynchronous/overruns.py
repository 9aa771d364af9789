"""Stages that are filled again before they were read: which copy, and which wait let it pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.finding import RACE, Finding
from gemmlab.emulator.hazard_order import Rank
from gemmlab.emulator.layout import LANES

if TYPE_CHECKING:
    from gemmlab.emulator.asynchronous.copies import Copy


def report_overrun(request: Request, block: BlockState, span: tuple[int, int], *, reduction: bool) -> None:
    """Report a copy to shared memory (address, bytes) that another copy is still to fill; sums may come together."""
    start, nbytes = span
    for earlier in block.incoming:
        together = reduction and earlier.reduction
        if earlier.address < start + nbytes and start < earlier.address + earlier.span and not together:
            words, other = _wait_before(request, earlier)
            message = (
                f"a copy fills a stage that an earlier copy is still to fill, and nobody has waited for that: {words}"
            )
            thread = request.warp * LANES + request.first
            request.findings.add(
                Finding(RACE, message, request.block.linear, thread, request.site, other, start, order=Rank.OVERRUN)
            )
            return


def _wait_before(request: Request, earlier: Copy) -> tuple[str, int]:
    """Return the wait between the two copies in words, and the other instruction: that wait, or the earlier copy."""
    wait = request.block.waits.get(request.warp)
    if wait is None or wait.time < earlier.time:
        return 'no wait is between, such as for an mbarrier at which its readers arrive ("empty")', earlier.site
    return wait.words, wait.site
