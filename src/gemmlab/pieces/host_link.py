"""Copies of blocks between the host's arrays and a GPU's memory.

Pinned arrays are copied directly, all others through a ring of pinned buffers for each direction. Several threads fill
and empty the buffers: a single one is slower than the link.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from gemmlab.core.hardware import usable_cpus
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.devices.cuda_driver import Driver
from gemmlab.pieces.block_sources import Block, Float32Array, Source, band_rows
from gemmlab.pieces.pinned_ring import BUFFER_BYTES, BUFFERS, PinnedBuffer, PinnedRing, wait_for_event

_PINNED = 1
"""The driver's memory type of pinned memory."""
_MOST_THREADS = 15


class HostLink:
    """Copies in both directions between the host and one GPU, each with a stream. One thread may load while another
    stores.
    """

    def __init__(self, driver: Driver, into_gpu: Any, out_of_gpu: Any) -> None:
        """Use these streams for copies. The caller waits for them and destroys them before it calls `close`."""
        self._driver, self._in, self._out = driver, into_gpu, out_of_gpu
        self._pinned = dict[int, bool]()
        self._rings = dict[str, PinnedRing]()
        threads = max(1, min(_MOST_THREADS, len(usable_cpus()) - 1))
        self._copies = ThreadPoolExecutor(threads)

    def load(self, source: Source, block: Block, address: int, pitch: int) -> None:
        """Enqueue the copies of a block to `address` on the GPU, where rows are `pitch` bytes apart."""
        start, host_pitch = self._direct(source, block)
        if host_pitch:
            self._copy(start, host_pitch, address, pitch, block, to_gpu=True)
            return
        ring = self._ring("in")
        waiting = deque[tuple[Future[None], PinnedBuffer, Block, int]]()

        def send() -> None:
            filled, buffer, part, place = waiting.popleft()
            filled.result()
            self._copy(buffer.address, FLOAT_BYTES * part.cols, place, pitch, part, to_gpu=True)
            self._driver("cuEventRecord", buffer.event, self._in)

        for part, place in _staged(source, block, ring.nbytes, address, pitch):
            while waiting and (len(waiting) == len(ring) or waiting[0][0].done()):
                send()
            buffer = ring.take()
            filled = self._begin(source, source.read, part, buffer.matrix(part.rows, part.cols))
            waiting.append((filled, buffer, part, place))
        while waiting:
            send()

    def store(self, address: int, pitch: int, target: Source, block: Block, event: Any) -> None:
        """Copy from `address` on the GPU, where rows are `pitch` bytes apart, to a block of `target`.

        Return once the block is written.

        `event` is one that a direct copy may record; nothing else may still wait for it.
        """
        start, host_pitch = self._direct(target, block)
        if host_pitch:
            self._copy(start, host_pitch, address, pitch, block, to_gpu=False)
            self._driver("cuEventRecord", event, self._out)
            wait_for_event(self._driver, event)
            return
        ring = self._ring("out")
        coming, written = deque[tuple[PinnedBuffer, Block]](), deque[Future[None]]()

        def write() -> None:
            buffer, part = coming.popleft()
            wait_for_event(self._driver, buffer.event)
            written.append(self._begin(target, target.write, part, buffer.matrix(part.rows, part.cols)))

        for part, place in _staged(target, block, ring.nbytes, address, pitch):
            if len(coming) == len(ring) // 2:
                write()
            if len(coming) + len(written) == len(ring):
                written.popleft().result()
            buffer = ring.take()
            self._copy(buffer.address, FLOAT_BYTES * part.cols, place, pitch, part, to_gpu=False)
            self._driver("cuEventRecord", buffer.event, self._out)
            coming.append((buffer, part))
        while coming:
            write()
        while written:
            written.popleft().result()

    def close(self) -> None:
        """Free the buffers and end the threads. No copy may be in progress."""
        with ExitStack() as undo:
            for ring in self._rings.values():
                undo.callback(ring.close)
            undo.callback(self._copies.shutdown, cancel_futures=True)

    def _begin(
        self, array: Source, copy: Callable[[Block, Float32Array], None], part: Block, buffer: Float32Array
    ) -> Future[None]:  # fmt: skip
        """Begin to copy between an array and a buffer. Chunks of a store are copied here, before this returns."""
        if array.chunks is None:
            return self._copies.submit(copy, part, buffer)
        copy(part, buffer)
        done = Future[None]()
        done.set_result(None)
        return done

    def _ring(self, way: str) -> PinnedRing:
        """Return the ring for copies `"in"` or `"out"`, created when first needed."""
        if way not in self._rings:
            self._rings[way] = PinnedRing(self._driver, BUFFER_BYTES, BUFFERS)
        return self._rings[way]

    def _direct(self, source: Source, block: Block) -> tuple[int, int]:
        """Return the address of a block of a pinned array, and the bytes from row to row. The second is 0 if the array
        is not pinned.
        """
        matrix = source.memory
        if matrix is None or not matrix.size:
            return 0, 0
        first, last = matrix.ctypes.data, matrix[-1, -1:].ctypes.data
        if first not in self._pinned:
            self._pinned[first] = all(is_pinned(self._driver, each) for each in (first, last))
        pitch = matrix.strides[0] if matrix.shape[0] > 1 else matrix.nbytes
        return first + pitch * block.row + FLOAT_BYTES * block.col, pitch if self._pinned[first] else 0

    def _copy(
        self, host: int, host_pitch: int, gpu: int, gpu_pitch: int, block: Block, *, to_gpu: bool
    ) -> None:  # fmt: skip
        driver, width = self._driver, FLOAT_BYTES * block.cols
        if not width * block.rows:
            return
        stream = self._in if to_gpu else self._out
        if width == host_pitch == gpu_pitch:
            if to_gpu:
                driver("cuMemcpyHtoDAsync", gpu, host, width * block.rows, stream)
            else:
                driver("cuMemcpyDtoHAsync", host, gpu, width * block.rows, stream)
            return
        module = driver.module
        copy, kinds = module.CUDA_MEMCPY2D(), module.CUmemorytype
        copy.WidthInBytes, copy.Height = width, block.rows
        if to_gpu:
            copy.srcMemoryType, copy.srcHost, copy.srcPitch = kinds.CU_MEMORYTYPE_HOST, host, host_pitch
            copy.dstMemoryType, copy.dstDevice, copy.dstPitch = kinds.CU_MEMORYTYPE_DEVICE, gpu, gpu_pitch
        else:
            copy.srcMemoryType, copy.srcDevice, copy.srcPitch = kinds.CU_MEMORYTYPE_DEVICE, gpu, gpu_pitch
            copy.dstMemoryType, copy.dstHost, copy.dstPitch = kinds.CU_MEMORYTYPE_HOST, host, host_pitch
        driver("cuMemcpy2DAsync", copy, stream)


def is_pinned(driver: Driver, address: int) -> bool:
    """Return whether the host's memory at an address is pinned."""
    about = driver.module.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    status, *found = driver.module.cuPointerGetAttribute(about, address)
    return not int(status) and bool(found) and int(found[0]) == _PINNED


def _staged(source: Source, block: Block, most_bytes: int, address: int, pitch: int) -> Iterator[tuple[Block, int]]:
    """Yield parts of a block that fit into a buffer, and the address of each part on the GPU."""
    for band in block.bands(band_rows(source, block, most_bytes)):
        for part in _parts(band, most_bytes):
            yield part, address + pitch * (part.row - block.row) + FLOAT_BYTES * (part.col - block.col)


def _parts(band: Block, most_bytes: int) -> list[Block]:
    """Return parts of a band that fit into a buffer: parts of single rows if a row does not fit."""
    most = most_bytes // FLOAT_BYTES
    if band.rows * band.cols <= most:
        return [band]
    width = min(band.cols, most)
    found = list[Block]()
    for row in band.bands(max(1, most // width)):
        for start in range(0, band.cols, width):
            found.append(row._replace(col=row.col + start, cols=min(width, band.cols - start)))
    return found
