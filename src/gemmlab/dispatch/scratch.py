"""Scratch memory on a GPU: a workspace, and tickets (words that are zero before and after all launches of a product).

A workspace comes from the allocator of the caller's package, in the order of the stream: the array is dropped as soon
as the launch is queued, and its memory is reused only by later work on the stream. For arrays of an unknown package the
driver allocates and frees it on the stream.

Launches on one stream run one after the other, so they share the tickets of that stream and a small workspace. Calls of
several launches share other tickets, which are not zero between two launches of a call. If such a call ends early, the
next one sets them to zero. The replays of a captured graph may overlap with launches on the stream, so tickets and
workspace of a captured launch are memory of the graph, which sets the tickets to zero itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gemmlab.arrays.packages import PER_THREAD_STREAM, Package
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_driver import Driver, open_driver
from gemmlab.devices.cuda_memory import CudaBuffer

_ALIGNED = 256
_SHARED_TICKETS = 1 << 15
"""Tickets in the buffer of a stream. For a launch that needs more, they are allocated and set to zero."""
_SHARED_BYTES = 1 << 16
"""Bytes of workspace in the buffer of a stream. For a launch that needs no more, nothing is allocated."""
_MOST_BUFFERS = 256
_NOT_CAPTURING = 0

Fresh = Callable[[], Any]
"""A function that returns an uninitialised array, large enough for the scratch memory, on the caller's current
stream.
"""


class Needs(NamedTuple):
    """The scratch memory of one launch."""

    workspace_bytes: int
    tickets: int
    """Number of tickets, which are words of 32 bits."""
    passed_on: bool = False
    """True if a call has several launches, and a later one reads data that an earlier one left in workspace or tickets.
    The call then does not get the workspace and the tickets that the stream's calls of one launch share: such a launch
    could come in between.
    """

    @property
    def nbytes(self) -> int:
        """Bytes of the tickets, which come first and are padded to 256, and of the workspace."""
        return -(-4 * self.tickets // _ALIGNED) * _ALIGNED + self.workspace_bytes

    def fresh(self, package: Package, beside: Any) -> Fresh:
        """Return a function that makes an array of `package` with room for tickets and workspace.

        The array lies on the GPU of the array `beside`.
        """
        return package.fresh(beside, (-(-self.nbytes // FLOAT_BYTES),))


class StreamBuffer:
    """Memory that calls on one stream share: tickets and, for calls of one launch, a small workspace."""

    def __init__(self, memory: CudaBuffer) -> None:
        self._memory = memory
        self._unfinished = False

    @property
    def tickets(self) -> int:
        """The address of the tickets."""
        return self._memory.address

    @property
    def workspace(self) -> int:
        """The address of the workspace."""
        return self._memory.address + FLOAT_BYTES * _SHARED_TICKETS

    def begin(self, stream: int) -> None:
        """Begin a call of several launches, before the first is queued. One thread at a time may be between this and
        `end`.

        If an earlier call ended before its last launch was queued, the tickets are set to zero on the stream.
        """
        if self._unfinished:
            open_driver()("cuMemsetD32Async", self.tickets, 0, _SHARED_TICKETS, stream, what="tickets")
        self._unfinished = True

    def end(self) -> None:
        """End the call, after all its launches are queued; not after an exception."""
        self._unfinished = False


class Scratch(NamedTuple):
    """The addresses of a launch's workspace and tickets. `give_back` must be called after the launch is queued."""

    workspace: int
    tickets: int
    give_back: Callable[[], object]
    shared: StreamBuffer | None = None
    """The buffer with the tickets of several launches; `None` for those of one launch, and for tickets of one call."""

    def loan(self) -> Scratch:
        """Return the same memory for one of several users. Giving it back does nothing."""
        return self._replace(give_back=_nothing)


class ScratchMemory:
    """Scratch memory of one GPU."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._buffers: dict[tuple[int, int, bool], StreamBuffer] = {}
        self._lock = threading.Lock()

    def take(self, needs: Needs, stream: int, package: Package | None, fresh: Fresh | None) -> Scratch:
        """Return scratch memory for one launch on `stream`, in the current context. Its tickets are zero, those in
        `Scratch.shared` after `StreamBuffer.begin`.

        `fresh` makes an array of `package`; without them, the driver allocates on the stream. Raises `MemoryError` if
        there is not enough memory.
        """
        driver = open_driver()
        buffer = None
        if needs.tickets <= _SHARED_TICKETS and not _is_captured(driver, stream):
            buffer = self._of_stream(stream, needs.passed_on)
        if buffer is not None and needs.workspace_bytes <= _SHARED_BYTES and not needs.passed_on:
            return Scratch(buffer.workspace, buffer.tickets, _nothing)
        start, give_back = _allocated(driver, needs, stream, package, fresh)
        workspace = start + needs.nbytes - needs.workspace_bytes
        if buffer is not None:
            return Scratch(workspace, buffer.tickets, give_back, buffer if needs.passed_on else None)
        if needs.tickets:
            driver("cuMemsetD32Async", start, 0, needs.tickets, stream)
        return Scratch(workspace, start, give_back)

    def _of_stream(self, stream: int, passed_on: bool) -> StreamBuffer | None:
        """Return a stream's buffer for calls with or without `Needs.passed_on`. It is allocated for the first one.

        `None` if there are too many buffers already.
        """
        key = stream, threading.get_ident() if stream == PER_THREAD_STREAM else 0, passed_on
        with self._lock:
            found = self._buffers.get(key)
            if found is None:
                if len(self._buffers) >= _MOST_BUFFERS:
                    return None
                words = np.zeros(_SHARED_TICKETS + (0 if passed_on else _SHARED_BYTES // FLOAT_BYTES), np.uint32)
                found = self._buffers[key] = StreamBuffer(self._device.upload(words))
            return found


def _allocated(
    driver: Driver, needs: Needs, stream: int, package: Package | None, fresh: Fresh | None
) -> tuple[int, Callable[[], object]]:  # fmt: skip
    if package is not None and fresh is not None:
        array = fresh()
        return package.address(array), partial(id, array)  # The call holds the array until its memory may be reused.
    start = int(driver("cuMemAllocAsync", max(1, needs.nbytes), stream, what=f"{needs.nbytes} bytes of scratch memory"))
    return start, lambda: driver("cuMemFreeAsync", start, stream)


def _nothing() -> None:
    """Do nothing: the stream keeps this memory."""


def _is_captured(driver: Driver, stream: int) -> bool:
    status, found = driver.module.cuStreamIsCapturing(stream)
    return not int(status) and int(found) != _NOT_CAPTURING
