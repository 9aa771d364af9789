"""One of the four parts of an SM: which of its warps issues next, and what only they share."""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush

from gemmlab.explain.model.constants import Constants

PARTITIONS = 4
"""Of an SM."""
IN_A_LINE = 8
"""Instructions in 128 bytes of code, which are fetched together."""
NEVER = float("inf")


class Partition:
    """Issues for the warps whose number leaves the same remainder."""

    __slots__ = ("banks", "cached", "current", "fetched", "free", "pipes", "ready")

    def __init__(self) -> None:
        self.ready: list[tuple[float, int]] = []
        """A heap: since when each warp could issue, but for the current one."""
        self.current: tuple[float, int] = (NEVER, -1)
        self.free = 0.0
        self.pipes: defaultdict[str, float] = defaultdict(float)
        """Until when each is busy."""
        self.banks = [0.0, 0.0]
        """Likewise."""
        self.cached: dict[int, float] = {}
        """Lines of code by when they came, the one used longest ago first."""
        self.fetched = 0.0

    def next(self) -> float:
        """When something could issue."""
        first = self.current[0]
        if self.ready and self.ready[0][0] < first:
            first = self.ready[0][0]
        return max(self.free, first)

    def take(self, time: float) -> int:
        """The warp that issues."""
        same, self.current = self.current, (NEVER, -1)
        if same[0] <= time:
            return same[1]
        warp = heappop(self.ready)[1]
        if same[1] >= 0:
            heappush(self.ready, same)
        return warp

    def fetch(self, line: int, ready: float, constants: Constants) -> float:
        """When a warp that is ready has its line of code."""
        comes = self.cached.pop(line, None)
        if comes is None:
            comes = self.fetched = max(self.fetched + constants.fetch, ready)
            if len(self.cached) >= constants.code_lines:
                del self.cached[next(iter(self.cached))]
        self.cached[line] = comes
        return max(comes, ready)

    def read_banks(self, reads: tuple[int, ...], time: float, window: float) -> float:
        """When an instruction that would issue at `time` does: all it reads has to come within the window."""
        late = time
        for bank, count in enumerate(reads):
            if count:
                busy = self.banks[bank]
                self.banks[bank] = busy = (max(time, busy)) + count
                late = max(late, busy - window)
        return late
