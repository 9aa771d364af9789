"""A GPU that computes a large product: copies in, products and copies out on a stream each.

Pinned arrays are copied from and to where they lie, all others through a ring of pinned buffers for each way. A thread
of its own writes the result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.devices.cuda_driver import Driver, open_driver
from gemmlab.dispatch.batches import ONE
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice_values import Choice
from gemmlab.dispatch.cuda_gemm import CudaGemm
from gemmlab.dispatch.override import named_kernel
from gemmlab.dispatch.piece_plan import OPERANDS, PiecePlan
from gemmlab.dispatch.scratch import Scratch
from gemmlab.dispatch.storage import Stored
from gemmlab.pieces.block_sources import Block, Source, band_rows
from gemmlab.pieces.gpu_limits import piece_problem, scratch_bytes
from gemmlab.pieces.pinned_ring import BUFFER_BYTES, BUFFERS, HostCopies, PinnedRing, new_event, wait_for_event
from gemmlab.pieces.route import Step

_PINNED = 1
"""The driver's memory type of pinned memory."""


@dataclass(slots=True)
class _Slot:
    """A slot in the GPU's memory."""

    address: int
    filled: Any
    """Comes when the last copy into it is done."""
    used: Any
    """Comes when the last product that reads or writes it is done."""
    drained: Future[None] = field(default_factory=Future)
    """Done when the last copy out of it is."""


class CudaCarrier:
    """`Carrier` of one GPU, whose context is current in the thread that uses it."""

    def __init__(
        self, gemm: CudaGemm, plan: PiecePlan, choice: Choice, call: Call, factors: tuple[float, float]
    ) -> None:
        """Allocate `plan.device_bytes` on the GPU. `MemoryError` where there is not so much."""
        self._driver: Driver = open_driver()
        self._gemm, self._plan, self._factors = gemm, plan, factors
        self._call = call._replace(a=None, b=None, c=None, out=None, kernel=choice.kernel, config=choice.config)
        self._kernel, self._config = named_kernel(choice.kernel, "cuda"), choice.config
        self._pinned = dict[int, bool]()
        self._writes = list[Future[None]]()
        self._rings: tuple[PinnedRing, ...] = ()
        self._lock = threading.Lock()
        self._copies = HostCopies()
        with ExitStack() as undo:
            undo.callback(self._copies.close)
            self._memory = gemm.device.allocate(plan.device_bytes)
            undo.callback(gemm.device.free, self._memory)
            flags = int(self._driver.module.CUstream_flags.CU_STREAM_NON_BLOCKING)
            self._in, self._products, self._out = (self._driver("cuStreamCreate", flags) for _ in range(3))
            self._driver("cuMemsetD8Async", self._memory.address, 0, plan.device_bytes, self._in)
            self._driver("cuStreamSynchronize", self._in)
            undo.pop_all()
        self._slots, self._scratch_at = self._divided()
        self._writer = ThreadPoolExecutor(1)

    def load(self, name: str, slot: int, source: Source, block: Block, *, clear: bool) -> None:
        driver, into, width = self._driver, self._slots[name][slot], self._plan.rooms[name].cols
        self._raise_errors()
        into.drained.result()
        driver("cuStreamWaitEvent", self._in, into.used, 0)
        if clear:
            driver("cuMemsetD8Async", into.address, 0, self._plan.rooms[name].nbytes, self._in)
        start, pitch = self._direct(source, block)
        if pitch:
            self._copy(start, pitch, into.address, FLOAT_BYTES * width, block, to_gpu=True)
        else:
            self._load_by_ring(source, block, into.address, width)
        driver("cuEventRecord", into.filled, self._in)

    def multiply(self, step: Step) -> None:
        plan, driver = self._plan, self._driver
        places = [self._slots[name][slot] for name, slot in zip(OPERANDS, step.slots, strict=True)]
        places[2].drained.result()
        for place in places:
            driver("cuStreamWaitEvent", self._products, place.filled, 0)
        a, b, c = (place.address for place in places)
        what = Stored(piece_problem(plan, *plan.computed(step.row, step.col), *self._factors), a, b, c)
        found = self._gemm.plan(what, self._call)
        workspace, tickets = scratch_bytes(self._kernel, self._config, what.problem)
        scratch = Scratch(self._scratch_at, self._scratch_at + workspace, _nothing) if found.needs else None
        if tickets:
            # A piece of other extents may have had its workspace there.
            driver("cuMemsetD8Async", self._scratch_at + workspace, 0, tickets, self._products)
        found.enqueue(self._products, *self._factors, a, b, c, ONE, scratch)
        for place in places:
            driver("cuEventRecord", place.used, self._products)
        places[2].drained = Future()

    def store(self, slot: int, target: Source, block: Block, done: Callable[[], None]) -> None:
        self._raise_errors()
        place = self._slots["c"][slot]
        self._writes.append(self._writer.submit(self._store, place, place.drained, target, block, done))

    def finish(self) -> None:
        for each in self._writes:
            each.result()
        self._driver("cuStreamSynchronize", self._products)

    def close(self) -> None:
        self._writer.shutdown(wait=True, cancel_futures=True)
        driver = self._driver
        with ExitStack() as undo:
            # Whatever fails, the rest is freed; after a kernel's fault all of it fails.
            undo.callback(self._copies.close)
            undo.callback(self._gemm.device.free, self._memory)
            for ring in self._rings:
                undo.callback(ring.close)
            for slots in self._slots.values():
                for slot in slots:
                    undo.callback(driver, "cuEventDestroy", slot.filled)
                    undo.callback(driver, "cuEventDestroy", slot.used)
            for stream in (self._in, self._products, self._out):
                undo.callback(driver, "cuStreamDestroy", stream)
                undo.callback(driver, "cuStreamSynchronize", stream)

    def _divided(self) -> tuple[Mapping[str, list[_Slot]], int]:
        """Return the slots, and the address of the workspace behind them."""
        at, slots = self._memory.address, dict[str, list[_Slot]]()
        for name, room in self._plan.rooms.items():
            slots[name] = []
            for _ in range(room.slots):
                place = _Slot(at, new_event(self._driver), new_event(self._driver))
                place.drained.set_result(None)
                slots[name].append(place)
                at += room.nbytes
        return slots, at

    def _load_by_ring(self, source: Source, block: Block, address: int, width: int) -> None:
        ring, _ = self._staging()
        for band in block.bands(band_rows(source, block, ring.nbytes)):
            for part in _parts(band, ring.nbytes):
                buffer = ring.take()
                self._read(source, part, buffer.matrix(part.rows, part.cols))
                offset = FLOAT_BYTES * ((part.row - block.row) * width + part.col - block.col)
                pitch = FLOAT_BYTES * part.cols
                self._copy(buffer.address, pitch, address + offset, FLOAT_BYTES * width, part, to_gpu=True)
                self._driver("cuEventRecord", buffer.event, self._in)

    def _read(self, source: Source, block: Block, into: Any) -> None:
        if source.chunks is None:
            self._copies.run(block, into, source.read)
        else:
            source.read(block, into)

    def _store(
        self, place: _Slot, drained: Future[None], target: Source, block: Block, done: Callable[[], None]
    ) -> None:  # fmt: skip
        """Copy a piece out and write it, in the thread that writes."""
        driver, width = self._driver, self._plan.rooms["c"].cols
        try:
            self._gemm.device.activate()
            driver("cuStreamWaitEvent", self._out, place.used, 0)
            start, pitch = self._direct(target, block)
            if pitch:
                self._copy(start, pitch, place.address, FLOAT_BYTES * width, block, to_gpu=False)
                driver("cuEventRecord", place.filled, self._out)
                wait_for_event(driver, place.filled)
            else:
                self._store_by_ring(place.address, width, target, block)
        except BaseException as error:
            drained.set_exception(error)
            raise
        drained.set_result(None)
        done()

    def _store_by_ring(self, address: int, width: int, target: Source, block: Block) -> None:
        _, ring = self._staging()
        waiting = list[tuple[Any, Block]]()

        def write() -> None:
            buffer, part = waiting.pop(0)
            wait_for_event(self._driver, buffer.event)
            values = buffer.matrix(part.rows, part.cols)
            if target.chunks is None:
                self._copies.run(part, values, target.write)
            else:
                target.write(part, values)

        for band in block.bands(band_rows(target, block, ring.nbytes)):
            for part in _parts(band, ring.nbytes):
                if len(waiting) == len(ring):
                    write()
                buffer = ring.take()
                offset = FLOAT_BYTES * ((part.row - block.row) * width + part.col - block.col)
                pitch = FLOAT_BYTES * part.cols
                self._copy(buffer.address, pitch, address + offset, FLOAT_BYTES * width, part, to_gpu=False)
                self._driver("cuEventRecord", buffer.event, self._out)
                waiting.append((buffer, part))
        while waiting:
            write()

    def _staging(self) -> tuple[PinnedRing, ...]:
        """Return the rings in and out, made when they are first needed."""
        with self._lock:
            if not self._rings:
                self._rings = tuple(PinnedRing(self._driver, BUFFER_BYTES, BUFFERS) for _ in range(2))
            return self._rings

    def _direct(self, source: Source, block: Block) -> tuple[int, int]:
        """Return address and pitch of a block in pinned memory; a pitch of 0 if it is not pinned."""
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

    def _raise_errors(self) -> None:
        """Raise what went wrong in the thread that writes."""
        while self._writes and self._writes[0].done():
            self._writes.pop(0).result()


def is_pinned(driver: Driver, address: int) -> bool:
    """Return whether memory of the host at an address is pinned."""
    about = driver.module.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    status, *found = driver.module.cuPointerGetAttribute(about, address)
    return not int(status) and bool(found) and int(found[0]) == _PINNED


def _parts(band: Block, most_bytes: int) -> list[Block]:
    """Return parts of a band that fit into a buffer: pieces of one row where a row does not fit."""
    most = most_bytes // FLOAT_BYTES
    if band.rows * band.cols <= most:
        return [band]
    width = min(band.cols, most)
    found = list[Block]()
    for row in band.bands(max(1, most // width)):
        for start in range(0, band.cols, width):
            found.append(row._replace(col=row.col + start, cols=min(width, band.cols - start)))
    return found


def _nothing() -> None:
    """Give back what belongs to the whole product."""
