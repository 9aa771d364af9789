"""Bulk groups of a warp: stores from shared to global memory.

The stores of a group read shared memory at the wait for the group, with `.read` or without: the latest possible moment.
Their writes become visible at a full wait. When the block ends, all stores read, and their writes become visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gemmlab.emulator.address_space import PENDING
from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.block_state import BlockState
from gemmlab.emulator.asynchronous.finding import COPY, RACE, UNWRITTEN
from gemmlab.emulator.asynchronous.proxies import Reading, end_read
from gemmlab.emulator.layout import LANES, Status

Bytes = npt.NDArray[np.uint8]


@dataclass(slots=True, eq=False)
class Store:
    """A bulk or tensor store or reduction, from shared to global memory, that was issued."""

    request: Request
    """The request that issued the store; after the handler has returned, its operands and results are not valid."""
    address: int
    places: slice | npt.NDArray[np.int64]
    """The bytes to store: their indices in the block's shared memory."""
    write: Callable[[Bytes], None]
    """Function that writes the bytes to global memory."""
    reading: Reading | None
    site: int
    sent: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    """True for each byte inside the tensor. Only of these the source must have been written; `None`: of all bytes."""
    data: Bytes | None = field(default=None, repr=False)

    def read(self, request: Request) -> None:
        """Read the store's source in shared memory; report bytes that are not written, and races, at `request`."""
        resident = request.block.resident
        valid = resident.valid[self.places]
        if self.sent is not None:
            valid = valid[self.sent]
        if (valid != 0xFF).any():
            late = bool((valid == PENDING).any())
            message = "that an asynchronous copy has not brought yet" if late else "that nothing has written"
            request.report(
                COPY if late else UNWRITTEN,
                f"a bulk store reads shared memory {message}",
                self.address,
                other=self.site,
            )
        if self.reading is not None:
            warp = request.warp

            def race(message: str, address: int, other: int) -> None:
                request.report(RACE, message, address, other=other)

            by = warp, request.first, int(resident.clocks[warp, warp])
            others = (
                f"; wait_group waits for its own thread's groups, so only thread {warp * LANES + request.first} can"
            )
            end_read(request.block, self.reading, self.address, race, by, others)
        self.data = resident.shared[self.places].copy()


@dataclass(slots=True)
class WarpGroups:
    """The bulk groups of one warp, each a list of its stores (`Store`): the `open` group, and the `closed` ones.

    Closed groups are in the order in which they were closed. A group leaves `closed` when its stores have read.
    """

    open: list[Store] = field(default_factory=list)
    closed: list[list[Store]] = field(default_factory=list)
    done: list[Store] = field(default_factory=list)
    """Stores that have read their source and whose writes are not visible yet."""

    @property
    def reading(self) -> Iterator[Store]:
        """Stores that have not read their source."""
        yield from self.open
        for group in self.closed:
            yield from group

    def commit(self) -> None:
        """Close the open group, and open an empty one."""
        self.closed.append(self.open)
        self.open = []

    def wait_read(self, request: Request, left: int) -> None:
        """Let the stores of all closed groups but the last `left` read their sources. `request` is the wait's."""
        while len(self.closed) > left:
            for store in self.closed.pop(0):
                store.read(request)
                self.done.append(store)

    def show(self) -> None:
        """Write to global memory the bytes of the stores that have read their source."""
        for store in self.done:
            assert store.data is not None  # noqa: S101 - it has read
            store.write(store.data)
        self.done.clear()


def groups_of(block: BlockState, warp: int) -> WarpGroups:
    """Return the bulk groups of a warp, by its index in the block."""
    return block.groups.setdefault(warp, WarpGroups())


def commit(request: Request) -> int:
    """Close the warp's open group."""
    groups_of(request.block, request.warp).commit()
    return Status.GO


def wait_read(request: Request) -> int:
    """Let the stores of the warp's closed groups read, as `Operation.WAIT_READ` demands."""
    if request.warp in request.block.groups:
        request.block.groups[request.warp].wait_read(request, request.operand(0))
    return Status.GO


def show(request: Request) -> int:
    """Write to global memory the bytes of the warp's stores that have read their source."""
    if request.warp in request.block.groups:
        request.block.groups[request.warp].show()
    return Status.GO
