"""One call from a handler to the engine: its warp, instruction, operands and results."""

from __future__ import annotations

from ctypes import c_int64, c_uint64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gemmlab.core.trace import MbarrierEvent
from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.finding import Finding, Findings
from gemmlab.emulator.asynchronous.host_words import lanes_of, wide
from gemmlab.emulator.hazard_order import Rank
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.launch_layout import RANK_BITS
from gemmlab.emulator.layout import LANES, Warp
from gemmlab.emulator.trace_buffers import Recorder

if TYPE_CHECKING:
    from gemmlab.emulator.asynchronous.mbarrier import Mbarrier


class UnusableError(Exception):
    """Exception that ends the launch after an error, which is among the findings already."""


@dataclass(slots=True)
class Request:
    """One operation (`async_calls.Operation`) that an instruction of one warp asks the engine to execute."""

    block: BlockState
    warp_address: int
    instruction: int
    """Host address of the instruction's record."""
    execute: int
    arguments: int
    """Host address of the rows of operands."""
    results: int
    findings: Findings
    recorder: Recorder | None = None
    """The buffers of a recorded launch; `None` if the launch is not recorded."""

    @property
    def warp(self) -> int:
        """Index of the warp in its block."""
        return wide(self.warp_address + Warp.INDEX)

    @property
    def site(self) -> int:
        """Index of the instruction."""
        return wide(self.instruction + Insn.INDEX)

    @property
    def lanes(self) -> list[int]:
        """The lanes that execute."""
        return list(lanes_of(self.execute))

    @property
    def first(self) -> int:
        """The lowest lane that executes."""
        return (self.execute & -self.execute).bit_length() - 1

    def operand(self, row: int, lane: int = 0) -> int:
        """Return operand number `row` of a lane, as 64 unsigned bits."""
        return c_int64.from_address(self.arguments + 8 * (LANES * row + lane)).value & 0xFFFFFFFFFFFFFFFF

    def column(self, row: int) -> list[int]:
        """Return operand number `row` of each of the 32 lanes, as 64 unsigned bits each."""
        values = (c_uint64 * LANES).from_address(self.arguments + 8 * LANES * row)
        return list(values)

    def answer(self, lane: int, value: int) -> None:
        """Write a lane's entry in the first row of results."""
        c_int64.from_address(self.results + 8 * lane).value = value - (value >> 63 << 64)

    def target(self, address: int, what: str) -> BlockState:
        """Return the block of the cluster to which a shared address belongs.

        The launch ends if there is no such block, or if that block has ended.

        `what` are words for the access, for the error message.
        """
        rank = address >> RANK_BITS
        if rank >= len(self.block.cluster):
            self.fail("cluster", f"{what} in {self.block.resident.geometry.place_in_cluster(rank)}", address)
        block = self.block.cluster[rank]
        if block.ended:
            message = f"{what} in block {rank} of the cluster, which has ended"
            self.report("cluster", message, address, mentions=block.its_end())
            raise UnusableError(message)
        return block

    def report(
        self, kind: str, message: str, address: int | None = None, *, other: int = -1, lane: int | None = None,
        order: Rank | None = None, mentions: tuple[tuple[str, int], ...] = (),
    ) -> None:  # fmt: skip
        """Add an error of this instruction to the findings; its thread is that of `lane`, by default of `first`."""
        thread = self.warp * LANES + (self.first if lane is None else lane)
        place = self.block.linear, thread, self.site, other, address
        self.findings.add(Finding(kind, message, *place, order=order, mentions=mentions))

    def note(self, kind: str, mbarrier: Mbarrier, phase: int) -> None:
        """Record an event at an mbarrier if its block or the request's is recorded; `kind` is as in `MbarrierEvent`."""
        block, owner = self.block.linear, mbarrier.block.linear
        if self.recorder is not None and (self.recorder.records(block) or self.recorder.records(owner)):
            name = mbarrier.block.resident.geometry.shared_word(mbarrier.address)
            self.recorder.mbarriers.append(
                MbarrierEvent(self.recorder.order, kind, block, self.warp, owner, mbarrier.address, name, phase)
            )

    def fail(self, kind: str, message: str, address: int | None = None) -> None:
        """Add an error to the findings and raise `UnusableError`, which ends the launch."""
        self.report(kind, message, address)
        raise UnusableError(message)
