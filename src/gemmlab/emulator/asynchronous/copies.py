"""Copies into shared memory: they land when a wait needs them, and then give their bytes to an mbarrier."""

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
    """Shared memory that a copy between blocks of a cluster reads until it lands."""

    block: BlockState = field(repr=False)
    index: slice
    address: int
    reading: Reading | None

    def read(self, copy: Copy) -> Bytes:
        """Return the bytes; report what was written since the copy's issue."""
        if self.reading is not None:
            warp, lane = divmod(copy.thread, LANES)
            by = warp, lane, int(copy.known[self.block.rank, warp])
            end_read(self.block, self.reading, self.address, copy.report_race, by)
        return self.block.resident.shared[self.index].copy()


@dataclass(slots=True, eq=False)
class Copy:
    """Bytes on their way into a block's shared memory."""

    block: BlockState
    mbarrier: Mbarrier
    address: int
    """Lowest shared address that it writes."""
    places: slice | npt.NDArray[np.int64]
    """Indices in the block's shared memory, in the order of `data`."""
    data: Bytes = field(repr=False)
    nbytes: int
    """Bytes that the mbarrier receives."""
    site: int
    thread: int
    issuer: BlockState = field(repr=False)
    known: Clocks = field(repr=False)
    """Clocks known to the thread that issued it."""
    findings: Findings = field(repr=False)
    reduction: int = 0
    phase: int = 0
    """Number of the mbarrier's phase at the issue."""
    source: Source | None = field(default=None, repr=False)
    """The shared memory that a copy between blocks reads when it lands."""
    what: str = ""
    """Its words, of a tensor copy: its box."""
    time: int = 0
    """The issuer's time of the issue (`BlockState.tick`)."""
    span: int = 0
    """Bytes of shared memory from `address` on that it writes in."""
    blocks: int = 0
    """Mask of the blocks that a multicast goes to; 0 if it is none."""

    @property
    def parity(self) -> int:
        """Parity of that phase."""
        return self.phase & 1

    def land(self) -> None:
        """Write the bytes and give them to the mbarrier."""
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
        """Add a race of the copy with another instruction."""
        self.findings.add(Finding(RACE, message, self.issuer.linear, self.thread, self.site, other, address))

    def _compare(self, valid: Bytes) -> None:
        """Report a write by a thread while the copy was under way."""
        late = valid[self.places] != PENDING
        if not late.any() or not self.block.checks:
            return
        at = self.places.start if isinstance(self.places, slice) else int(self.places[int(late.argmax())])
        at += int(late.argmax()) if isinstance(self.places, slice) else 0
        shift = 0 if self.block.resident.geometry.byte_races else 2
        row = self.block.shadow()[(at - self.block.resident.geometry.shared_low) >> shift]
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
    """Start a copy of `data` to `places` of a block; `span` is the shared address and the number of bytes around it.

    `proxy`: it is one of the asynchronous proxy; `what`: its words, of a tensor copy; `blocks`: those of a multicast.
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
    block.incoming.append(copy)
    block.history.append(copy)
    del block.history[:-HISTORY]
    mbarrier.copies.append(copy)
    block.changed()
    # A copy between blocks reads as late as it can: `Engine.land_rest` makes it land for those who wait already.
    if mbarrier.waiting and source is None:
        mbarrier.settle()


HISTORY = 64
"""Copies that a block remembers for reports."""
