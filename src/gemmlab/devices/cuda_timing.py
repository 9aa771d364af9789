"""Time work on a GPU by events on its stream, with cold caches or with the contents that the last run left.

Mode `cold`: before every run a buffer of at least twice the level-2 cache is written (the flush), so that operands come
from memory. Meanwhile the host queues the run; if that takes the host longer, the buffer is written several times. Mode
`warm`: runs follow each other. If several of them (`inner`) are timed together, they are replayed as one graph, because
the host may not queue short runs fast enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from gemmlab.devices.cuda_driver import Driver
from gemmlab.devices.cuda_memory import CudaMemory

Mode = Literal["cold", "warm"]
MODES: tuple[Mode, ...] = ("cold", "warm")
AT_ONCE = 64
"""Most runs that are queued before their times are read."""
FLUSHED_CACHES = 2
"""Size of the buffer that a flush writes, in multiples of the level-2 cache."""
LEAST_FLUSHED = 64 << 20
"""Least bytes of the buffer that a flush writes: writing it gives the host time to queue a short run."""
MOST_FLUSHES = 32
"""Most times that the flush before one run writes its buffer."""
FEWEST_IN_A_ROW = 4
"""Least number of runs queued together for which late runs lead to more flushes; fewer runs are accepted as they are.
The first run of a call is slow on the host for other reasons, so it counts little among these.
"""


class EventTimer:
    """A timer of work that a function `enqueue` puts on the stream."""

    def __init__(self, driver: Driver, memory: CudaMemory, stream: Any, l2_bytes: int, mode: Mode) -> None:
        self.mode = mode
        self._driver = driver
        self._stream = stream
        self._events: list[Any] = []
        self._flushes = 1
        self._scratch = memory.allocate(max(LEAST_FLUSHED, FLUSHED_CACHES * l2_bytes)) if mode == "cold" else None

    def time(self, enqueue: Callable[[], object], repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times of one run of `enqueue`'s work in microseconds, each the mean over `inner` runs.

        With cold caches each run is timed alone, after a flush; with warm ones `inner` runs are timed together.
        """
        if self.mode == "cold":
            apart = self._apart(enqueue, repeats * inner, flush=True)
            return [math.fsum(apart[first : first + inner]) / inner for first in range(0, len(apart), inner)]
        if inner == 1:
            return self._apart(enqueue, repeats, flush=False)
        with self._graph(enqueue, inner) as replay:
            return [time / inner for time in self._apart(replay, repeats, flush=False)]

    def _apart(self, enqueue: Callable[[], object], repeats: int, *, flush: bool) -> list[float]:
        times: list[float] = []
        while len(times) < repeats:
            runs = min(AT_ONCE, repeats - len(times))
            found, late = self._queue(enqueue, runs, flush=flush)
            if runs >= FEWEST_IN_A_ROW and 4 * late > runs and self._flushes < MOST_FLUSHES:
                self._flushes *= 2
            else:
                times += found
        return times

    def _queue(self, enqueue: Callable[[], object], runs: int, *, flush: bool) -> tuple[list[float], int]:
        """Queue `runs` runs; return their times in microseconds, and the number of late ones.

        A run is late if the GPU finished the flush before the host had queued the run: its time may include a wait for
        the host. Without `flush` no run is late.
        """
        driver, stream = self._driver, self._stream
        while len(self._events) < 2 * runs:
            self._events.append(driver("cuEventCreate", 0))
        pairs = [(self._events[2 * index], self._events[2 * index + 1]) for index in range(runs)]
        scratch, late = self._scratch if flush else None, 0
        for start, end in pairs:
            if scratch is not None:
                for _ in range(self._flushes):
                    driver("cuMemsetD32Async", scratch.address, 0, scratch.nbytes // 4, stream)
            driver("cuEventRecord", start, stream)
            enqueue()
            driver("cuEventRecord", end, stream)
            late += scratch is not None and not driver.module.cuEventQuery(start)[0]
        driver("cuStreamSynchronize", stream)
        return [1e3 * float(driver("cuEventElapsedTime", start, end)) for start, end in pairs], late

    @contextmanager
    def _graph(self, enqueue: Callable[[], object], runs: int) -> Iterator[Callable[[], None]]:
        """Capture `runs` runs as one graph; yield a function that queues the graph on the stream."""
        driver, stream = self._driver, self._stream
        driver("cuStreamBeginCapture", stream, driver.module.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        try:
            for _ in range(runs):
                enqueue()
        finally:
            graph = driver("cuStreamEndCapture", stream)
        executable = driver("cuGraphInstantiate", graph, 0)
        driver("cuGraphDestroy", graph)
        try:
            # The first replay uploads the graph.
            driver("cuGraphLaunch", executable, stream)
            driver("cuStreamSynchronize", stream)
            yield lambda: driver("cuGraphLaunch", executable, stream)
        finally:
            driver("cuGraphExecDestroy", executable)
