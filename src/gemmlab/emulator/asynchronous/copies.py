"""Copies into shared memory. They are completed when a wait needs them, and then count their bytes at an mbarrier."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gemmlab.emulator.address_space import PENDING
from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.block_state import BlockState, Clocks
from gemmlab.emulator.asynchronous.combining import combined
from gemmlab.emulator.asynchronous.finding import COPY, RACE, UNWRITTEN, Finding, Findings
from gemmlab.emulator.asynchronous.mbarrier import Mbarrier
from gemmlab.emulator.asynchronous.overruns import report_overrun
from gemmlab.emulator.asynchronous.proxies import Reading, check_write, end_read
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.races import WRITER, WRITER_FENCES, WRITER_INSTRUCTION

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Source:
    """Shared memory that a copy between blocks of a cluster may read until the copy is complete."""

    block: BlockState = field(repr=False)
    index: slice
    address: int
    reading: Reading | None

    def read(self, copy: Copy) -> Bytes:
        """Return the bytes; report writes to them since the copy's issue."""
        if self.reading is not None:
            warp, lane = divmod(copy.thread, LANES)
            by = warp, lane, int(copy.known[self.block.rank, warp])
            end_read(self.block, self.reading, self.address, copy.report_race, by)
        return self.block.resident.shared[self.index].copy()


@dataclass(slots=True, eq=False)
class Copy:
    """An asynchronous copy into a block's shared memory; `land` completes it."""

    block: BlockState
    mbarrier: Mbarrier
    address: int
    """Lowest shared address that the copy writes."""
    places: slice | npt.NDArray[np.int64]
    """Indices of the bytes in the block's shared memory, in the order of `data`."""
    data: Bytes = field(repr=False)
    nbytes: int
    """Bytes that the copy completes at the mbarrier."""
    site: int
    thread: int
    issuer: BlockState = field(repr=False)
    known: Clocks = field(repr=False)
    """Vector clock, at the issue, of the warp that issued the copy."""
    findings: Findings = field(repr=False)
    reduction: int = 0
    phase: int = 0
    """Number of the mbarrier's phase at the issue."""
    source: Source | None = field(default=None, repr=False)
    """The shared memory that a copy between blocks reads at its completion; `None` if `data` was read at the issue."""
    what: str = ""
    """Words for the copy in messages: for a tensor copy its box, else empty."""
    time: int = 0
    """Time of the issue in the issuing block (`BlockState.tick`)."""
    span: int = 0
    """Length in bytes of the range from `address` on that contains all bytes written."""
    blocks: int = 0
    """Mask, by rank in the cluster, of the blocks that a multicast goes to; 0 if the copy is no multicast."""

    @property
    def parity(self) -> int:
        """Parity of `phase`."""
        return self.phase & 1

    def land(self) -> None:
        """Complete the copy: write the bytes, and count them at the mbarrier."""
        self.block.incoming.remove(self)
        self.mbarrier.copies.remove(self)
        memory, valid = self.block.resident.shared, self.block.resident.valid
        if not self.reduction:
            self._compare(valid)
        if self.source is not None:
            self.data = self.source.read(self)
        old = memory[self.places]
        memory[self.places] = combined(self.reduction, old, self.data) if self.reduction else self.data
        valid[self.places] = 0xFF
        for other in self.block.incoming:
            if other.reduction:
                valid[other.places] = PENDING
        np.maximum(self.mbarrier.arriving, self.known, out=self.mbarrier.arriving)
        self.mbarrier.word.transactions -= self.nbytes
        self.mbarrier.now.landed.append(self)
        self.mbarrier.store()

    def report_race(self, message: str, address: int, other: int) -> None:
        """Add a finding: at `address`, the copy races with the instruction whose index is `other`."""
        self.findings.add(Finding(RACE, message, self.issuer.linear, self.thread, self.site, other, address))

    def _compare(self, valid: Bytes) -> None:
        """Report writes by threads to the destination while the copy was in flight."""
        late = valid[self.places] != PENDING
        if not late.any() or not self.block.checks:
            return
        at = self.places.start if isinstance(self.places, slice) else int(self.places[int(late.argmax())])
        at += int(late.argmax()) if isinstance(self.places, slice) else 0
        row = self.block.shadow()[(at - self.block.resident.geometry.shared_low) >> self.block.element_shift]
        if row[WRITER_FENCES // 4] < 0:
            return
        message = (
            f"shared memory is written by thread {int(row[WRITER // 4])} and by a copy that was under way then: no wait"
            " for the copy before"
        )
        self.findings.add(
            Finding(
                COPY, message, self.issuer.linear, self.thread, self.site, int(row[WRITER_INSTRUCTION // 4]),
                self.address,
            )
        )  # fmt: skip


def send(
    request: Request, block: BlockState, mbarrier: Mbarrier, places: slice | npt.NDArray[np.int64], data: Bytes,
    span: tuple[int, int], *, reduction: int = 0, source: Source | None = None, proxy: bool = True,
    what: str = "", blocks: int = 0,
) -> None:  # fmt: skip
    """Start a copy of `data` to the indices `places` in a block's shared memory.

    `span` is (lowest shared address, number of bytes) of the range that contains them. `proxy` is true if the
    asynchronous proxy makes the copy, `reduction` not 0 if the data are combined with what is there. `what` names the
    copy in messages. `blocks` is the mask of the blocks that a multicast goes to, else 0.
    """
    report_overrun(request, block, span, reduction=bool(reduction))
    check_write(request, block, *span, proxy=proxy, adds=bool(reduction))
    if reduction and (block.resident.valid[places] == 0).any():
        request.report(UNWRITTEN, "a reduction into shared memory that nothing has written", span[0])
    block.resident.valid[places] = PENDING
    copy = Copy(
        block, mbarrier, span[0], places, data, data.size, request.site, request.warp * LANES + request.first,
        request.block, request.block.known(request.warp), request.findings, reduction, mbarrier.completed, source,
        what, request.block.tick(), span[1], blocks,
    )  # fmt: skip
    request.note("copy", mbarrier, mbarrier.completed)
    block.incoming.append(copy)
    block.history.append(copy)
    del block.history[:-HISTORY]
    mbarrier.copies.append(copy)
    block.changed()
    # A copy between blocks reads as late as possible. For warps that wait already, `Engine.land_rest` completes it.
    if mbarrier.waiting and source is None:
        mbarrier.settle()


HISTORY = 64
"""Number of the last copies into a block that are stored for reports (`BlockState.history`)."""
