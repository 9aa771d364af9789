"""Timelines of all warps of a block that wait for each other at mbarriers, and of the stages that copies fill.

A *stage* is the shared memory whose copies count their bytes at one mbarrier. It is free again when the warp that
refills it has passed the wait before its next copy; if nothing refills it, when the last warp that passed a wait for
its bytes arrives at an mbarrier that counts no bytes of copies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gemmlab.core.trace import MbarrierEvent
from gemmlab.plots.pictures.pipeline import Span
from gemmlab.plots.pictures.warp_replay import Fill, Wait, WarpReplay
from gemmlab.sass.instruction import Instruction

UNDER_WAY, FULL, IN_USE = "copies under way", "full, not read yet", "in use"


@dataclass(frozen=True, slots=True)
class StageTimeline:
    """The timelines of a block's warps and stages."""

    warps: tuple[tuple[Span, ...], ...]
    """Consecutive spans of each warp, by the warp's number."""
    stages: Mapping[int, tuple[Span, ...]]
    """Address of the mbarrier that counts a stage's bytes -> its spans: `UNDER_WAY`, `FULL`, `IN_USE`."""
    waits: tuple[Wait, ...]
    """Waits at mbarriers that took time."""
    cycles: int

    def full(self) -> list[tuple[int, int]]:
        """Return (cycle, number of stages that are full or in use from then on), at each change of the number."""
        change: dict[int, int] = defaultdict(int)
        for span in (span for spans in self.stages.values() for span in spans if span.kind != UNDER_WAY):
            change[span.begin] += 1
            change[span.end] -= 1
        found, count = [(0, 0)], 0
        for time in sorted(time for time, step in change.items() if step):
            count += change[time]
            found.append((time, count))
        return found

    @property
    def mean_full(self) -> float:
        """Mean number of stages that are full or in use, from the first such moment to the last."""
        spans = [(until - since, count) for (since, count), (until, _) in pairwise(self.full())][1:]
        whole = sum(length for length, _count in spans)
        return sum(length * count for length, count in spans) / whole if whole else 0.0


def stage_timeline(
    steps: Iterable[tuple[int, Instruction]], events: Sequence[MbarrierEvent], block: int = 0
) -> StageTimeline:
    """Return the timelines of a block from its steps, (warp, instruction) in the order of a trace, and the events at
    mbarriers.
    """
    replay = WarpReplay(steps, [event for event in events if event.owner == block], block)
    replay.run()
    warps = tuple(tuple(replay.spans[warp]) for warp in range(max(replay.spans, default=-1) + 1))
    end = max((spans[-1].end for spans in warps if spans), default=0)
    stages = {address: _spans_of(replay.fills, address, end) for address in sorted(replay.copied)}
    return StageTimeline(warps, stages, tuple(replay.waits), end)


def _spans_of(fills: Mapping[tuple[int, int], Fill], address: int, end: int) -> tuple[Span, ...]:
    own = [fill for (at, _phase), fill in sorted(fills.items()) if at == address]
    found: list[Span] = []
    for place, fill in enumerate(own):
        following = own[place + 1].begin if place + 1 < len(own) else end
        free = min(following, end if fill.free is None else fill.free)
        read = free if fill.read is None else min(fill.read, free)
        complete = min(fill.complete, read)
        bounds = ((UNDER_WAY, fill.begin, complete), (FULL, complete, read), (IN_USE, read, free))
        found += [Span(kind, since, until) for kind, since, until in bounds if until > since]
    return tuple(found)
