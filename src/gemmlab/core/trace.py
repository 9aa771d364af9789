"""Traces of a kernel, instruction by instruction: plain values that any device may produce.

A trace records the steps (executed instructions) and memory accesses of some blocks of one launch, until its buffers
are full. Masks have bit i set for lane i.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from gemmlab.core.counters import Observation, SiteCounters

LANES = 32


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """The parts of a launch to record. Blocks and warps are numbered with x fastest.

    At most `most_steps` steps and `most_accesses` accesses are recorded.
    """

    blocks: tuple[int, ...] = (0,)
    """Blocks whose steps and accesses are recorded."""
    warps: tuple[int, ...] | None = None
    """Warps to record in each of `blocks`; all by default."""
    written: tuple[int, int] | None = None
    """Global addresses, [first, end), whose writes `Trace.writes` takes into account; all by default."""
    most_steps: int = 1 << 18
    most_accesses: int = 1 << 15
    most_blocks: int = 1 << 16
    """Blocks with this number or a higher one are not recorded, nor are their writes."""


@dataclass(frozen=True, slots=True)
class Step:
    """One execution of an instruction by a warp, with at least one active lane whose predicate is true."""

    block: int
    warp: int
    site: SiteCounters = field(repr=False)
    """The instruction, with its counts over the whole launch."""
    active: int
    """Mask of the active lanes. After a divergent branch these are a part of the warp's lanes."""
    on: int
    """Mask of the active lanes whose predicate is true."""


class Steps(Sequence[Step]):
    """Steps stored as columns `block`, `warp`, `instruction`, `active`, `on`; a `Step` is made when it is accessed."""

    def __init__(self, columns: npt.NDArray[np.void], sites: Sequence[SiteCounters]) -> None:
        self.columns = columns
        self._sites = sites

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, index: int) -> Step: ...

    @overload
    def __getitem__(self, index: slice) -> Steps: ...

    def __getitem__(self, index: int | slice) -> Step | Steps:
        if isinstance(index, slice):
            return Steps(self.columns[index], self._sites)
        block, warp, instruction, active, on = self.columns[index].item()
        return Step(block, warp, self._sites[instruction], active, on)

    def __iter__(self) -> Iterator[Step]:
        for block, warp, instruction, active, on in self.columns.tolist():
            yield Step(block, warp, self._sites[instruction], active, on)

    def where(self, mask: npt.NDArray[Any]) -> Steps:
        """Return the steps that `mask`, an array of truth values or of indices, selects."""
        return Steps(self.columns[mask], self._sites)


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a warp to memory. An asynchronous copy is two accesses: a global read, then a shared write.

    Bulk copies and reductions are not recorded.
    """

    order: int
    """Index of the access's step in `Trace.steps`."""
    step: Step
    space: str
    """Memory that is accessed: `"global"`, `"shared"` or `"local"`, also for instructions with generic addresses."""
    width: int
    """Bytes per lane."""
    store: bool
    """True for stores; atomic operations count as stores."""
    on: int
    """Mask of the lanes that take part."""
    addresses: tuple[int, ...] = field(repr=False)
    """One address per lane; those of lanes that do not take part are undefined."""

    @property
    def lanes(self) -> tuple[int, ...]:
        """The lanes that take part, lowest first."""
        return lanes_of(self.on)

    @property
    def site(self) -> SiteCounters:
        """The instruction, with its counts over the whole launch."""
        return self.step.site

    @property
    def warp(self) -> int:
        """The number of the warp, in its block."""
        return self.step.warp

    @property
    def kind(self) -> str:
        """The kind of access, as in `core.counters`: `"shared load"`."""
        return self.step.site.kind

    def bytes_of(self, lane: int) -> range:
        """Return the addresses of the bytes that a lane moves."""
        return range(self.addresses[lane], self.addresses[lane] + self.width)


@dataclass(frozen=True, slots=True)
class MbarrierEvent:
    """Something that happened at an mbarrier, a barrier in shared memory that counts arrivals and bytes."""

    order: int
    """Index in `Trace.steps` of the step that caused the event; if its warp is not recorded, of the last step before,
    or -1. If the buffer was full, the index counts the lost steps, too.
    """
    kind: str
    """`"arrive"` for an arrival or bytes to expect, `"copy"` for a copy that was issued and will count its bytes there,
    `"pass"` for a wait that ended.
    """
    block: int
    warp: int
    """`block` and `warp` are the numbers of those that caused the event."""
    owner: int
    """The block in whose shared memory the mbarrier lies."""
    address: int
    name: str
    """The mbarrier's variable with its index, such as `full[1]`; its address if that is unknown."""
    phase: int
    """The phase of the mbarrier that the event belongs to, from 0 on; for `"pass"` the phase that had ended."""


@dataclass(frozen=True, slots=True)
class BlockWrites:
    """The lowest and the highest global address to which one block wrote."""

    block: int
    """The block's number. Blocks start in the order of their numbers."""
    low: int
    """The lowest global address, in bytes, that a lane wrote to."""
    high: int
    """The highest global address that a lane wrote to: that of the first byte of the lane's store."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The recording of one launch."""

    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    """Threads of a block by dimension."""
    shared_low: int
    """The first shared address of the block's own memory; lower ones belong to the system."""
    steps: Steps = field(repr=False)
    """Steps of the recorded warps in order of execution. The emulator interleaves warps differently from a GPU."""
    accesses: tuple[Access, ...] = field(repr=False)
    """Memory accesses of the recorded warps in order of execution."""
    writes: tuple[BlockWrites, ...] = field(repr=False)
    """Writes of every block below `TraceRequest.most_blocks` that wrote to `written`, in order of block numbers.

    Those of bulk copies and reductions are not among them.
    """
    lost: int
    """Number of steps and accesses that were not recorded because the buffers were full.

    Accesses of lost steps are not counted.
    """
    observation: Observation = field(repr=False)
    """Counters and hazards of the whole launch."""
    mbarriers: tuple[MbarrierEvent, ...] = field(default=(), repr=False)
    """Events at mbarriers of the recorded blocks, and those that these blocks caused, in order of execution."""

    def steps_of(self, warp: int, block: int = 0) -> Steps:
        """Return the recorded steps of one warp of a block, in order of execution."""
        columns = self.steps.columns
        return self.steps.where((columns["block"] == block) & (columns["warp"] == warp))

    def accesses_of(self, kind: str = "", *, space: str = "", warp: int | None = None) -> Iterator[Access]:
        """Yield the accesses of a kind (of `core.counters`), a memory space and a warp, of all blocks, in order.

        The defaults match every access.
        """
        for access in self.accesses:
            if kind in ("", access.kind) and space in ("", access.space) and warp in (None, access.warp):
                yield access

    def thread(self, warp: int, lane: int) -> tuple[int, int, int]:
        """Return the threadIdx (x, y, z) of a lane of a warp."""
        x, y, _z = self.threads
        linear = warp * LANES + lane
        return linear % x, linear // x % y, linear // (x * y)


@lru_cache(maxsize=1024)
def lanes_of(mask: int) -> tuple[int, ...]:
    """Return the numbers of the lanes in a mask, lowest first."""
    return tuple(lane for lane in range(LANES) if mask >> lane & 1)
