"""A CPU as the carrier of a large product: panels are copied from files or stores into a bounded workspace.

One thread copies in, one multiplies (with the threads of the kernel), one copies out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import numpy.typing as npt

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.dispatch.piece_plan import PiecePlan
from gemmlab.pieces.block_sources import Block, Source, at_once, parts
from gemmlab.pieces.route import Step

Float32Array = npt.NDArray[np.float32]
Product = Callable[[Float32Array, Float32Array, Float32Array], None]
"""Function `(a, b, c)` that computes the piece `c` of the result from the panels `a` of op(a) and `b` of op(b). If beta
is not 0, `c` holds the elements to add, not yet times beta, before the call.
"""


class CpuCarrier:
    """The `Carrier` (`pieces.carrier`) of a CPU. Its slots for panels and pieces are NumPy arrays."""

    def __init__(self, plan: PiecePlan, product: Product) -> None:
        """Allocate the slots. `MemoryError` if there is too little memory."""
        self._plan, self._product = plan, product
        rooms = plan.rooms
        self._slots = {
            name: [np.zeros((room.rows, room.cols), np.float32) for _ in range(room.slots)]
            for name, room in rooms.items()
        }
        self._last: dict[tuple[str, int], Future[None]] = {}
        self._store_lock = threading.Lock()
        """Held while chunks of a store are copied: the plan has memory for the chunks of one copy."""
        self._reader, self._multiplier, self._writer = (ThreadPoolExecutor(1) for _ in range(3))

    def load(self, name: str, slot: int, source: Source, block: Block, *, row: int, clear: bool) -> None:
        into = self._slots[name][slot]
        before = self._last.get((name, slot))
        if before is not None:
            # This wait also keeps the calling thread from running far ahead.
            before.result()

        def run() -> None:
            if clear:
                into.fill(0.0)
            # The block as if it began at the slot's first row.
            whole = block._replace(row=block.row - row)
            for part in parts(source, block, at_once(FLOAT_BYTES * block.rows * block.cols)):
                with self._copying(source):
                    source.read(part, into[part.within(whole)])

        self._last[name, slot] = self._reader.submit(run)

    def multiply(self, step: Step) -> None:
        places = list(zip("abc", step.slots, strict=True))
        before = [self._last[place] for place in places if place in self._last]
        (rows, cols), turned = self._plan.computed(step.row, step.col), self._plan.turned
        a, b, c = (self._slots[name][slot] for name, slot in places)
        left = a.T[:rows] if turned[0] else a[:rows]
        right = b.T[:, :cols] if turned[1] else b[:, :cols]

        def run() -> None:
            for each in before:
                each.result()
            self._product(left, right, c[:rows, :cols])

        found = self._multiplier.submit(run)
        self._last.update(dict.fromkeys(places, found))

    def store(
        self, slot: int, at: tuple[int, int], target: Source, block: Block, done: Callable[[], None]
    ) -> None:  # fmt: skip
        before, values = self._last["c", slot], self._slots["c"][slot][at[0] :, at[1] :]

        def run() -> None:
            before.result()
            for part in parts(target, block, at_once(FLOAT_BYTES * block.rows * block.cols)):
                with self._copying(target):
                    target.write(part, values[part.within(block)])
            # It may read the piece again.
            with self._copying(target):
                done()

        self._last["c", slot] = self._writer.submit(run)

    def finish(self) -> None:
        for each in list(self._last.values()):
            each.result()

    def close(self) -> None:
        for each in (self._reader, self._multiplier, self._writer):
            each.shutdown(wait=True, cancel_futures=True)
        self._slots.clear()

    def _copying(self, source: Source) -> AbstractContextManager[object]:
        """Return the lock for a copy from or to an array; one that does nothing for an array without chunks."""
        return nullcontext() if source.chunks is None else self._store_lock
