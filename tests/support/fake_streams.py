"""A driver whose streams run late, in any order that events allow: what waits for nothing comes too early or late."""

from __future__ import annotations

import ctypes
import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from support.gemm_driver import GemmDriver, multiply

_NOT_READY = 600
Work = Callable[[], bool]
"""Does its work and returns True, or returns False while it has to wait."""


class Fields:
    """A structure whose fields are set by name."""


@dataclass
class StreamsDriver(GemmDriver):
    """Copies and products are queued; each query of the host lets some of them run."""

    seed: int = 0
    queues: dict[int, deque[Work]] = field(default_factory=dict)
    asked: dict[int, int] = field(default_factory=dict)
    """Number of times each event was recorded."""
    came: dict[int, int] = field(default_factory=dict)
    pinned: list[tuple[int, int]] = field(default_factory=list)
    """First byte and the one after the last of pinned memory."""
    ran: list[str] = field(default_factory=list)
    """What ran, in its order."""
    allocated: int = 0
    most: int = 0
    """Bytes of the GPU in use, and the most that ever were."""
    tickets: list[int] = field(default_factory=list)
    """The first ticket of each product with a workspace, as the product finds it."""

    CU_MEMHOSTALLOC_PORTABLE = 1
    CUmemorytype = SimpleNamespace(CU_MEMORYTYPE_HOST=1, CU_MEMORYTYPE_DEVICE=2)
    CUDA_MEMCPY2D = Fields

    def __post_init__(self) -> None:
        self._random, self._lock, self._next = random.Random(self.seed), threading.RLock(), 1000  # noqa: S311 - a test
        self._sizes_of = dict[int, int]()
        self.multiply = self._queue_product

    def _call(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        found = getattr(self, f"do_{name}", None)
        with self._lock:
            return found(*arguments) if found is not None else super()._call(name, *arguments)

    def stream_create(self, _flags: int) -> Any:
        self._next += 1
        self.queues[self._next] = deque()
        return self._next

    def mem_alloc(self, nbytes: int) -> int:
        self.allocated += nbytes
        self.most = max(self.most, self.allocated)
        address = super().mem_alloc(nbytes)
        self._sizes_of[address] = nbytes
        return address

    def mem_free(self, address: int) -> int:
        self.allocated -= self._sizes_of.pop(address)
        return super().mem_free(address)

    def pointer_get_attribute(self, name: str, pointer: int) -> tuple[int, Any]:
        if name.endswith("MEMORY_TYPE"):
            return (0, 1) if any(first <= pointer < end for first, end in self.pinned) else (1, None)
        return super().pointer_get_attribute(name, pointer)

    def do_cuMemHostAlloc(self, nbytes: int, _flags: int) -> tuple[int, int]:  # noqa: N802 - the driver's name
        block = ctypes.create_string_buffer(nbytes)
        address = ctypes.addressof(block)
        self.memory[address] = block
        return 0, address

    def do_cuMemFreeHost(self, address: int) -> tuple[int]:  # noqa: N802
        del self.memory[address]
        return (0,)

    def do_cuEventCreate(self, _flags: int) -> tuple[int, int]:  # noqa: N802
        self._next += 1
        self.asked[self._next] = self.came[self._next] = 0
        return 0, self._next

    def do_cuEventRecord(self, event: int, stream: int) -> tuple[int]:  # noqa: N802
        self.asked[event] += 1
        number = self.asked[event]

        def come() -> bool:
            self.came[event] = max(self.came[event], number)
            return True

        self.queues[stream].append(come)
        return (0,)

    def do_cuStreamWaitEvent(self, stream: int, event: int, _flags: int) -> tuple[int]:  # noqa: N802
        number = self.asked[event]
        self.queues[stream].append(lambda: self.came[event] >= number)
        return (0,)

    def do_cuEventQuery(self, event: int) -> tuple[int]:  # noqa: N802
        self._advance()
        return (0 if self.came[event] >= self.asked[event] else _NOT_READY,)

    def do_cuStreamSynchronize(self, stream: int) -> tuple[int]:  # noqa: N802
        while self.queues.get(stream):
            self._advance()
        return (0,)

    def do_cuMemsetD8Async(self, address: int, value: int, count: int, stream: int) -> tuple[int]:  # noqa: N802
        return self._queue(stream, "set", lambda: ctypes.memset(address, value, count))

    def do_cuMemcpyHtoDAsync(self, to: int, source: int, nbytes: int, stream: Any) -> tuple[int]:  # noqa: N802
        return self._copy(stream, "in", to, source, nbytes)

    def do_cuMemcpyDtoHAsync(self, to: int, source: int, nbytes: int, stream: Any) -> tuple[int]:  # noqa: N802
        return self._copy(stream, "out", to, source, nbytes)

    def _copy(self, stream: Any, what: str, to: int, source: int, nbytes: int) -> tuple[int]:
        return self._queue(stream, what, lambda: ctypes.memmove(to, source, nbytes))

    def do_cuMemcpy2DAsync(self, copy: Any, stream: int) -> tuple[int]:  # noqa: N802
        to_gpu = copy.dstMemoryType == self.CUmemorytype.CU_MEMORYTYPE_DEVICE
        to, source = (copy.dstDevice, copy.srcHost) if to_gpu else (copy.dstHost, copy.srcDevice)
        extents = copy.Height, copy.WidthInBytes, copy.dstPitch, copy.srcPitch

        def run() -> None:
            rows, width, to_pitch, source_pitch = extents
            for row in range(rows):
                ctypes.memmove(to + row * to_pitch, source + row * source_pitch, width)

        return self._queue(stream, "in" if to_gpu else "out", run)

    def note_scratch(self, workspace: int, tickets: int) -> None:
        """Queue what a kernel does there: it reads a ticket, and leaves other values in the workspace."""

        def run() -> None:
            self.tickets.append(ctypes.c_uint32.from_address(tickets).value)
            ctypes.memset(workspace, 0x55, tickets - workspace)

        if tickets:
            self._queue(self.launches[-1][-1], "workspace", run)

    def _queue_product(self, *given: Any) -> None:
        self._queue(self.launches[-1][-1], "product", lambda: multiply(*given))

    def _queue(self, stream: int, what: str, run: Callable[[], object]) -> tuple[int]:
        def work() -> bool:
            self.ran.append(what)
            run()
            return True

        self.queues[stream].append(work)
        return (0,)

    def _advance(self) -> None:
        """Let the streams run for a while, in any order."""
        ready = [queue for queue in self.queues.values() if queue]
        self._random.shuffle(ready)
        for queue in ready[: self._random.randint(1, 3)]:
            for _ in range(self._random.randint(1, 4)):
                if not queue or not queue[0]():
                    break
                queue.popleft()
