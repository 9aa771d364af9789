"""Pinned buffers of the host, for copies of arrays that are not pinned: the GPU copies one while the host fills or
empties others.
"""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.devices.cuda_driver import Driver

Float32Array = npt.NDArray[np.float32]
BUFFER_BYTES, BUFFERS = 4 << 20, 32
_NOT_READY = 600
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 20e-6, 1e-3


@dataclass(frozen=True, slots=True)
class PinnedBuffer:
    """Pinned memory of the host: copies to and from a GPU read and write it directly."""

    address: int
    content: npt.NDArray[np.uint8]
    event: Any
    """Event that completes with the GPU's most recent copy from or to the buffer."""

    def matrix(self, rows: int, cols: int) -> Float32Array:
        """Return the beginning of the buffer as a float32 matrix."""
        return self.content[: FLOAT_BYTES * rows * cols].view(np.float32).reshape(rows, cols)


class PinnedRing:
    """Pinned buffers that are used in turn. The same CUDA context must be current when the ring is made and closed."""

    def __init__(self, driver: Driver, nbytes: int, count: int) -> None:
        """Allocate the buffers. `MemoryError` if the system pins no more memory."""
        self._driver, self.nbytes, self._next = driver, nbytes, 0
        self._buffers = list[PinnedBuffer]()
        flags = int(driver.module.CU_MEMHOSTALLOC_PORTABLE)
        try:
            for _ in range(count):
                address = int(driver("cuMemHostAlloc", nbytes, flags, what=f"{nbytes} pinned bytes"))
                memory: Any = (ctypes.c_uint8 * nbytes).from_address(address)
                event = new_event(driver)
                self._buffers.append(PinnedBuffer(address, np.frombuffer(memory, np.uint8), event))
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._buffers)

    def take(self) -> PinnedBuffer:
        """Return the next buffer in turn; wait until the GPU's most recent copy from or to it is done."""
        buffer = self._buffers[self._next % len(self._buffers)]
        self._next += 1
        wait_for_event(self._driver, buffer.event)
        return buffer

    def close(self) -> None:
        """Free the buffers. No copy may be in progress."""
        for buffer in self._buffers:
            self._driver("cuEventDestroy", buffer.event)
            self._driver("cuMemFreeHost", buffer.address)
        self._buffers.clear()


def new_event(driver: Driver) -> Any:
    """Return a new CUDA event without a time stamp: to record the time would take time."""
    return driver("cuEventCreate", int(driver.module.CUevent_flags.CU_EVENT_DISABLE_TIMING))


def wait_for_event(driver: Driver, event: Any) -> None:
    """Wait until an event has completed. Other threads of this process run meanwhile."""
    pause = _SHORTEST_WAIT_S
    while True:
        (status, *_none) = driver.module.cuEventQuery(event)
        if int(status) == 0:
            return
        if int(status) != _NOT_READY:
            raise driver.error(status, "cuEventQuery")
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_WAIT_S)
