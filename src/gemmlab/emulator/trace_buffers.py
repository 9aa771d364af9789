"""Buffers for the recording of one launch, and the `Recording` made from them (see `observe.tracing`).

The buffers are allocated before the launch. If one is full, further entries are only counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gemmlab.core.counters import Observation
from gemmlab.core.trace import Access, BlockWrites, MbarrierEvent, Steps, TraceRequest
from gemmlab.core.trace import Trace as Recording
from gemmlab.emulator.instruction_layout import Space
from gemmlab.emulator.launch_layout import Trace
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.step_trace import WRITES

NOWHERE = 1 << 62
SPACES = {Space.GLOBAL: "global", Space.SHARED: "shared", Space.LOCAL: "local"}
Bytes = npt.NDArray[np.uint8]

STEP = np.dtype(
    {
        "names": ["block", "warp", "instruction", "active", "on"],
        "formats": ["i8", "i4", "i4", "u4", "u4"],
        "offsets": [Trace.STEP_BLOCK, Trace.STEP_WARP, Trace.STEP_INSTRUCTION, Trace.STEP_ACTIVE, Trace.STEP_EXECUTE],
        "itemsize": Trace.STEP_SIZE,
    }
)
ACCESS = np.dtype(
    {
        "names": ["step", "key", "space", "execute", "addresses"],
        "formats": ["i8", "i4", "i4", "u4", ("i8", LANES)],
        "offsets": [Trace.ACCESS_STEP, Trace.ACCESS_KEY, Trace.ACCESS_SPACE, Trace.ACCESS_EXECUTE,
                    Trace.ACCESS_ADDRESSES],
        "itemsize": Trace.ACCESS_SIZE,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recorder:
    """Buffers for the recording of one launch. The object must exist until the launch has ended."""

    header: Bytes
    handlers: npt.NDArray[np.int64]
    blocks: npt.NDArray[np.int64]
    """A row of 3 i64 for each block, at most `TraceRequest.most_blocks`: 1 if its steps are recorded, else 0; then the
    lowest and the highest start address of its global writes in `TraceRequest.written`, `NOWHERE` and -1 without any.
    """
    steps: npt.NDArray[np.void] = field(repr=False)
    accesses: npt.NDArray[np.void] = field(repr=False)
    mbarriers: list[MbarrierEvent] = field(default_factory=list, repr=False)

    @property
    def address(self) -> int:
        """Host address of the `Trace` structure, for the launch."""
        return int(self.header.ctypes.data)

    def records(self, block: int) -> bool:
        """Return whether the steps of a block are recorded."""
        return block < len(self.blocks) and bool(self.blocks[block, 0])

    @property
    def order(self) -> int:
        """The index of the last step of a chosen warp, stored or only counted in a full buffer; -1 before the first."""
        return int(self.header.view(np.int64)[Trace.STEP_COUNT // 8]) - 1


def recorder(request: TraceRequest, blocks: int, handlers: npt.NDArray[np.int64]) -> Recorder:
    """Return new buffers for a launch of `blocks` blocks; `handlers` are its instructions' own handlers."""
    known = min(blocks, request.most_blocks)
    entries = np.empty((known, Trace.BLOCK_SIZE // 8), np.int64)
    entries[:] = (0, NOWHERE, -1)
    for block in request.blocks:
        if block < known:
            entries[block, 0] = 1
    # Pages that are never written take no memory.
    made = Recorder(
        np.zeros(Trace.SIZE, np.uint8), handlers, entries,
        np.zeros(request.most_steps, STEP), np.zeros(request.most_accesses, ACCESS),
    )  # fmt: skip
    wide = made.header.view(np.int64)
    low, high = request.written or (0, NOWHERE)
    warps = -1 if request.warps is None else sum(1 << warp for warp in request.warps)
    for at, value in (
        (Trace.HANDLERS, handlers.ctypes.data), (Trace.BLOCKS, entries.ctypes.data), (Trace.BLOCK_COUNT, known),
        (Trace.WARPS, warps), (Trace.FROM, low), (Trace.UNTIL, high),
        (Trace.STEPS, made.steps.ctypes.data), (Trace.STEP_CAPACITY, request.most_steps),
        (Trace.ACCESSES, made.accesses.ctypes.data), (Trace.ACCESS_CAPACITY, request.most_accesses),
    ):  # fmt: skip
        wide[at // 8] = value
    return made


def recording(
    made: Recorder, observation: Observation, grid: tuple[int, int, int], threads: tuple[int, int, int], shared_low: int
) -> Recording:
    """Return the recording of a launch with this grid and block, from the buffers that it filled."""
    count, stored = _counts(made, Trace.STEP_COUNT, made.steps)
    steps = Steps(made.steps[:stored].copy(), observation.counters.sites)
    accesses, lost = _accesses(made, steps)
    bounds = enumerate(made.blocks[:, 1:].tolist())
    writes = tuple(BlockWrites(block, low, high) for block, (low, high) in bounds if high >= low)
    return Recording(grid, threads, shared_low, steps, accesses, writes, lost + count - stored, observation,
                     tuple(made.mbarriers))  # fmt: skip


def _counts(made: Recorder, at: int, room: npt.NDArray[np.void]) -> tuple[int, int]:
    """Return the number of entries that a launch produced, and the number of those in the buffer `room`."""
    count = int(made.header.view(np.int64)[at // 8])
    return count, min(count, len(room))


def _accesses(made: Recorder, steps: Steps) -> tuple[tuple[Access, ...], int]:
    count, stored = _counts(made, Trace.ACCESS_COUNT, made.accesses)
    columns = (made.accesses[name][:stored].tolist() for name in ("step", "space", "key", "execute", "addresses"))
    makers = steps.where(made.accesses["step"][:stored])
    found = tuple(
        Access(index, step, SPACES[space], key & 0xFF, key >= WRITES, on, tuple(addresses))
        for step, index, space, key, on, addresses in zip(makers, *columns, strict=True)
    )
    return found, count - stored
