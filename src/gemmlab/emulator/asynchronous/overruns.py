"""Reports of copies to shared memory that an earlier copy, still in flight, writes too, with the last wait between
them.
"""

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
    """Report a new copy to shared memory (`span`: address, bytes) that an earlier copy, still in flight, writes too.

    Two reductions are allowed. Only the first such copy is reported.
    """
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
    """Return words for the wait between the two copies, and the index of its instruction.

    Without a wait, it is that of the earlier copy.
    """
    wait = request.block.waits.get(request.warp)
    if wait is None or wait.time < earlier.time:
        return 'no wait is between, such as for an mbarrier at which its readers arrive ("empty")', earlier.site
    return wait.words, wait.site
