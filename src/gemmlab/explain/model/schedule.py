"""The warps of one SM taking turns: how many cycles some resident blocks take for their script.

Each of the four partitions issues one instruction a cycle: of the same warp as before while it is ready, else of the
one that has been ready longest. A warp is ready when its last instruction's stall count is over, the dependency
barriers it waits for are released, and the line of code is there. What is shared serves in the order of issue: pipes
of a partition and its two register banks, L1 with shared memory, the SM's way to L2. A sector that a warp of the same
block has asked for before comes when it comes, without another request.
"""

from __future__ import annotations

from heapq import heappush

from gemmlab.core.counters import ASYNC_COPY, SHARED_KINDS, TEXTURE_LOAD
from gemmlab.explain.model.constants import Constants
from gemmlab.explain.model.partition import IN_A_LINE, NEVER, PARTITIONS, Partition
from gemmlab.explain.model.script import BARRIER, COMMIT, COPIES, NONE, Line, Request, Script

SECTOR = 32
_GROUPS_KEPT = 8
"""More groups of copies than a kernel waits for at once."""


def block_cycles(script: Script, blocks: int, constants: Constants, l2_bytes: float, latency: float) -> float:
    """Until the last of `blocks` blocks that start together is done.

    `l2_bytes`: that an SM gets from L2 in a cycle. `latency`: cycles until what L1 does not have begins to come.
    """
    return _Multiprocessor(script, blocks, constants, l2_bytes, latency).run()


class _Warp:
    __slots__ = ("block", "copies", "part", "place", "released", "way")

    def __init__(self, way: tuple[tuple[int, int], ...], block: int, part: Partition) -> None:
        self.way, self.block, self.part = way, block, part
        self.place = -1
        self.released = [0.0] * (NONE + 1)
        """When each dependency barrier is."""
        self.copies = [0.0]
        """When each group of asynchronous copies is there; the last one is still open."""


class _Multiprocessor:
    def __init__(self, script: Script, blocks: int, constants: Constants, l2_bytes: float, latency: float) -> None:
        self.code, self.requests, self.constants = script.code, script.requests, constants
        self.latencies = [_latency(line, constants) for line in script.code]
        self.sector_cycles, self.far = SECTOR / l2_bytes, latency
        self.parts = [Partition() for _ in range(PARTITIONS)]
        self.size = len(script.warps)
        self.warps = [
            _Warp(way, block, self.parts[(block * self.size + number) % PARTITIONS])
            for block in range(blocks)
            for number, way in enumerate(script.warps)
        ]
        self.living = [self.size] * blocks
        self.waiting: list[list[int]] = [[] for _ in range(blocks)]
        """Warps at the block's barrier."""
        self.arrival: list[dict[int, float]] = [{} for _ in range(blocks)]
        """When each sector that a block asked for is there."""
        self.l1_free = self.l2_free = self.finished = 0.0

    def run(self) -> float:
        for number in range(len(self.warps)):
            self._go_on(number, 0.0)
        queue = self.constants.queue
        times = [part.next() for part in self.parts]
        while True:
            time = min(times)
            if time == NEVER:
                return self.finished
            which = times.index(time)
            part = self.parts[which]
            number = part.take(time)
            at, asked = self.warps[number].way[self.warps[number].place]
            until = part.pipes[self.code[at].pipe]
            if asked >= 0 and self.l1_free - queue > until:
                until = self.l1_free - queue
            if until > time:
                heappush(part.ready, (until, number))
                times[which] = part.next()
            elif self._issue(number, at, asked, time):
                times = [part.next() for part in self.parts]
            else:
                times[which] = part.next()

    def _issue(self, number: int, at: int, asked: int, time: float) -> bool:
        """Whether warps of other partitions may go on by it."""
        warp, line = self.warps[number], self.code[at]
        part = warp.part
        if line.reads:
            time = part.read_banks(line.reads, time, self.constants.window)
        part.free = time + 1.0
        part.pipes[line.pipe] = time + line.busy
        taken, done = time, time + self.latencies[at]
        if asked >= 0:
            taken, done = self._serve(warp, self.requests[asked], time, self.latencies[at])
        released = warp.released
        if line.read != NONE and taken + self.constants.operands > released[line.read]:
            released[line.read] = taken + self.constants.operands
        if line.write != NONE and done > released[line.write]:
            released[line.write] = done
        if line.role == BARRIER:
            self.waiting[warp.block].append(number)
        else:
            if line.role == ASYNC_COPY:
                warp.copies[-1] = max(warp.copies[-1], done)
            elif line.role == COMMIT:
                warp.copies = [*warp.copies[-_GROUPS_KEPT:], warp.copies[-1]]
            self._go_on(number, time + line.stall, stay=True)
            if warp.place == len(warp.way):
                self.living[warp.block] -= 1
        return bool(self.waiting[warp.block]) and self._meet(warp.block, time)

    def _serve(self, warp: _Warp, request: Request, time: float, latency: float) -> tuple[float, float]:
        """When L1 has taken a request, and when its result is there."""
        self.l1_free = taken = max(self.l1_free, time) + request.l1
        done = taken + latency
        if request.store:
            if request.sectors:
                self.l2_free = max(self.l2_free, time) + len(request.sectors) * self.sector_cycles
            return taken, done
        known = self.arrival[warp.block]
        for sector in request.sectors:
            comes = known.get(sector)
            if comes is None:
                self.l2_free = max(self.l2_free, time) + self.sector_cycles
                known[sector] = comes = max(self.l2_free, taken) + self.far + latency
            done = max(done, comes)
        return taken, max(done, taken + latency + self.constants.l1) if request.sectors else done

    def _meet(self, block: int, time: float) -> bool:
        """Let the warps at a barrier go on, when all that live are there: whether they did."""
        if len(self.waiting[block]) != self.living[block]:
            return False
        through, self.waiting[block] = self.waiting[block], []
        for number in through:
            self._go_on(number, time + self.constants.barrier)
        return True

    def _go_on(self, number: int, ready: float, *, stay: bool = False) -> None:
        """To a warp's next instruction; `stay`: its partition prefers it."""
        warp = self.warps[number]
        warp.place += 1
        if warp.place == len(warp.way):
            self.finished = max(self.finished, ready)
            return
        at = warp.way[warp.place][0]
        line = self.code[at]
        for barrier in line.waits:
            ready = max(ready, warp.released[barrier])
        if line.role == COPIES and len(warp.copies) > line.left + 1:
            ready = max(ready, warp.copies[-2 - line.left])
        if at % IN_A_LINE == 0 or at != warp.way[warp.place - 1][0] + 1:
            ready = warp.part.fetch(at // IN_A_LINE, ready, self.constants)
        if stay:
            warp.part.current = (ready, number)
        else:
            heappush(warp.part.ready, (ready, number))


def _latency(line: Line, constants: Constants) -> float:
    """From service to result; what comes from beyond L1 takes that much longer."""
    if line.role in SHARED_KINDS and line.role != ASYNC_COPY:
        return constants.shared
    if line.role == TEXTURE_LOAD:
        return constants.texture
    return 0.0 if line.role else constants.special
