"""What a kernel did, step by step: plain values that any device may produce.

A trace is of some blocks of one launch, as far as its room went. Masks have bit i set for lane i.
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
    """What is to be recorded of a launch. Blocks and warps by number, x fastest."""

    blocks: tuple[int, ...] = (0,)
    """Of which each step and access is kept."""
    warps: tuple[int, ...] | None = None
    """Of such a block; all by default."""
    written: tuple[int, int] | None = None
    """Global addresses, from and until, that `BlockWrites` tells of; all by default."""
    most_steps: int = 1 << 18
    most_accesses: int = 1 << 15
    most_blocks: int = 1 << 16
    """Blocks with higher numbers are not recorded."""


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction, executed by one warp with at least one lane on."""

    block: int
    warp: int
    site: SiteCounters = field(repr=False)
    """The instruction, with what it came to in the whole launch."""
    active: int
    """Lanes of the running group."""
    on: int
    """Those of them whose guard held."""


class Steps(Sequence[Step]):
    """Steps as columns `block`, `warp`, `instruction`, `active`, `on`: there are many, and few are looked at."""

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

    def where(self, kept: npt.NDArray[Any]) -> Steps:
        """Those that a mask or an array of indices picks."""
        return Steps(self.columns[kept], self._sites)


@dataclass(frozen=True, slots=True)
class Access:
    """One warp's access to memory. An asynchronous copy is two: the read of global memory, then the write to shared."""

    order: int
    """Index of its step in the trace."""
    step: Step
    space: str
    """`"global"`, `"shared"` or `"local"`, also of instructions with generic addresses."""
    width: int
    """Bytes a lane."""
    store: bool
    """Atomic operations count as stores."""
    on: int
    """The lanes that take part."""
    addresses: tuple[int, ...] = field(repr=False)
    """One a lane; those of lanes that do not take part mean nothing."""

    @property
    def lanes(self) -> tuple[int, ...]:
        """Those that take part."""
        return lanes_of(self.on)

    @property
    def site(self) -> SiteCounters:
        """The instruction."""
        return self.step.site

    @property
    def warp(self) -> int:
        """That makes it."""
        return self.step.warp

    @property
    def kind(self) -> str:
        """As in `core.counters`, `"shared load"`."""
        return self.step.site.kind

    def bytes_of(self, lane: int) -> range:
        """The addresses of the bytes that a lane moves."""
        return range(self.addresses[lane], self.addresses[lane] + self.width)


@dataclass(frozen=True, slots=True)
class BlockWrites:
    """The bounds of what one block wrote to global memory."""

    block: int
    """By number, which is also the order in which blocks start."""
    low: int
    """The lowest address of a lane,"""
    high: int
    """and the highest."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One launch, recorded."""

    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    """Of a block."""
    shared_low: int
    """The first shared address that is the block's own; what lies below is the system's."""
    steps: Steps = field(repr=False)
    """Of all chosen warps, in the order in which they were executed: warps take turns that no GPU would give them."""
    accesses: tuple[Access, ...] = field(repr=False)
    """Of the same."""
    writes: tuple[BlockWrites, ...] = field(repr=False)
    """Of the blocks that wrote anything, in the order of their numbers."""
    lost: int
    """Steps and accesses that there was no room for."""
    observation: Observation = field(repr=False)
    """Of the whole launch."""

    def steps_of(self, warp: int, block: int = 0) -> Steps:
        """What one warp executed, in order."""
        columns = self.steps.columns
        return self.steps.where((columns["block"] == block) & (columns["warp"] == warp))

    def accesses_of(self, kind: str = "", *, space: str = "", warp: int | None = None) -> Iterator[Access]:
        """Those of a kind (of `core.counters`), memory space and warp, in order; each may be left open."""
        for access in self.accesses:
            if kind in ("", access.kind) and space in ("", access.space) and warp in (None, access.warp):
                yield access

    def thread(self, warp: int, lane: int) -> tuple[int, int, int]:
        """threadIdx of a lane."""
        x, y, _z = self.threads
        linear = warp * LANES + lane
        return linear % x, linear // x % y, linear // (x * y)


@lru_cache(maxsize=1024)
def lanes_of(mask: int) -> tuple[int, ...]:
    """The lanes of a mask, lowest first."""
    return tuple(lane for lane in range(LANES) if mask >> lane & 1)
