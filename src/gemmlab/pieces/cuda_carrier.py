"""A GPU as the carrier of a large product: copies in, products, and copies out, each on its own stream.

A separate thread writes the result.
"""

from __future__ import annotations

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
from gemmlab.pieces.block_sources import Block, Source
from gemmlab.pieces.gpu_limits import piece_problem, scratch_bytes
from gemmlab.pieces.host_link import HostLink
from gemmlab.pieces.pinned_ring import new_event
from gemmlab.pieces.route import Step


@dataclass(slots=True)
class _Slot:
    """Memory on the GPU for one panel of A or B, or for one piece of C."""

    address: int
    filled: Any
    """Event that completes with the most recent copy into the slot."""
    used: Any
    """Event that completes with the most recent product that reads or writes the slot."""
    drained: Future[None] = field(default_factory=Future)
    """Future that is pending from a product into the slot until the result is copied out and written. If that fails,
    the future has the exception. Before the first product into the slot, the future is done.
    """


class CudaCarrier:
    """The `Carrier` (`pieces.carrier`) of one GPU.

    The GPU's context must be current in the thread that uses the carrier.
    """

    def __init__(
        self, gemm: CudaGemm, plan: PiecePlan, choice: Choice, call: Call, factors: tuple[float, float]
    ) -> None:
        """Allocate `plan.device_bytes` on the GPU. `MemoryError` if it has too little memory."""
        self._driver: Driver = open_driver()
        self._gemm, self._plan, self._factors = gemm, plan, factors
        self._call = call._replace(a=None, b=None, c=None, out=None, kernel=choice.kernel, config=choice.config)
        self._kernel, self._config = named_kernel(choice.kernel, "cuda"), choice.config
        self._writes = list[Future[None]]()
        with ExitStack() as undo:
            self._memory = gemm.device.allocate(plan.device_bytes)
            undo.callback(gemm.device.free, self._memory)
            flags = int(self._driver.module.CUstream_flags.CU_STREAM_NON_BLOCKING)
            self._in, self._products, self._out = (self._driver("cuStreamCreate", flags) for _ in range(3))
            self._driver("cuMemsetD8Async", self._memory.address, 0, plan.device_bytes, self._in)
            self._driver("cuStreamSynchronize", self._in)
            undo.pop_all()
        self._link = HostLink(self._driver, self._in, self._out)
        self._slots, self._scratch_at = self._divided()
        self._writer = ThreadPoolExecutor(1)

    def load(self, name: str, slot: int, source: Source, block: Block, *, row: int, clear: bool) -> None:
        driver, into, width = self._driver, self._slots[name][slot], self._plan.rooms[name].cols
        self._raise_errors()
        into.drained.result()
        driver("cuStreamWaitEvent", self._in, into.used, 0)
        if clear:
            driver("cuMemsetD8Async", into.address, 0, self._plan.rooms[name].nbytes, self._in)
        self._link.load(source, block, into.address + FLOAT_BYTES * width * row, FLOAT_BYTES * width)
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
            # A piece of other extents may have had its workspace at this place.
            driver("cuMemsetD8Async", self._scratch_at + workspace, 0, tickets, self._products)
        found.enqueue(self._products, *self._factors, a, b, c, ONE, scratch)
        for place in places:
            driver("cuEventRecord", place.used, self._products)
        places[2].drained = Future()

    def store(
        self, slot: int, at: tuple[int, int], target: Source, block: Block, done: Callable[[], None]
    ) -> None:  # fmt: skip
        self._raise_errors()
        place = self._slots["c"][slot]
        self._writes.append(self._writer.submit(self._store, place, at, place.drained, target, block, done))

    def finish(self) -> None:
        for each in self._writes:
            each.result()
        self._driver("cuStreamSynchronize", self._products)

    def close(self) -> None:
        self._writer.shutdown(wait=True, cancel_futures=True)
        driver = self._driver
        with ExitStack() as undo:
            # If one step fails, the others still run; after a kernel's fault all of them fail.
            undo.callback(self._gemm.device.free, self._memory)
            undo.callback(self._link.close)
            for slots in self._slots.values():
                for slot in slots:
                    undo.callback(driver, "cuEventDestroy", slot.filled)
                    undo.callback(driver, "cuEventDestroy", slot.used)
            for stream in (self._in, self._products, self._out):
                undo.callback(driver, "cuStreamDestroy", stream)
                undo.callback(driver, "cuStreamSynchronize", stream)

    def _divided(self) -> tuple[Mapping[str, list[_Slot]], int]:
        """Divide the GPU's memory; return the slots of each matrix, and the address of the workspace after them."""
        at, slots = self._memory.address, dict[str, list[_Slot]]()
        for name, room in self._plan.rooms.items():
            slots[name] = []
            for _ in range(room.slots):
                place = _Slot(at, new_event(self._driver), new_event(self._driver))
                place.drained.set_result(None)
                slots[name].append(place)
                at += room.nbytes
        return slots, at

    def _store(
        self, place: _Slot, at: tuple[int, int], drained: Future[None], target: Source, block: Block,
        done: Callable[[], None],
    ) -> None:  # fmt: skip
        """Copy the piece at row and column `at` of slot `place` out and write it to `block` of `target`, then end
        `drained` and call `done`.

        It runs in the writing thread. If the copy fails, `drained` gets the exception, and `done` is not called.
        """
        driver, width = self._driver, self._plan.rooms["c"].cols
        try:
            self._gemm.device.activate()
            driver("cuStreamWaitEvent", self._out, place.used, 0)
            address = place.address + FLOAT_BYTES * (width * at[0] + at[1])
            self._link.store(address, FLOAT_BYTES * width, target, block, place.filled)
        except BaseException as error:
            drained.set_exception(error)
            raise
        drained.set_result(None)
        done()

    def _raise_errors(self) -> None:
        """Raise the error of the writing thread, if there is one."""
        while self._writes and self._writes[0].done():
            self._writes.pop(0).result()


def _nothing() -> None:
    """Free nothing when a piece is done: the workspace belongs to the whole product."""
