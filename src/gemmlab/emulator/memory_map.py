"""Device memory of the emulator: allocations far apart in a 64-bit address space, with a validity byte for each byte.

Several threads may use one memory: a lock protects the table of slots, and each launch has its own `Reach`.
"""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.emulator.launch_layout import Launch
from gemmlab.emulator.texture_map import TextureMap

Bytes = npt.NDArray[np.uint8]
SECTOR = 32
_NO_RESERVE = 0x4000 if sys.platform == "linux" else getattr(mmap, "MAP_NORESERVE", 0)
"""`MAP_NORESERVE`, which the `mmap` module has from Python 3.13 on: the system reserves no memory for the pages."""
ALIGNMENT = 256
"""Alignment in bytes of every allocation's address, as on a GPU."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Allocated device memory: its emulated `address`, its bytes, and for each byte 0xFF in `valid` once written."""

    address: int
    data: Bytes = field(repr=False)
    valid: Bytes = field(repr=False)

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)


@dataclass(frozen=True, slots=True)
class Reach:
    """The memory of one launch: the allocations that existed when it began, and a copy of its parameters if it needs
    one. Their memory is not freed before this object.
    """

    slots: npt.NDArray[np.int64] = field(repr=False)
    """The table of `Launch.SLOTS`."""
    textures: npt.NDArray[np.int64] = field(repr=False)
    """The table of `Launch.TEXTURES`."""
    allocations: Mapping[int, Allocation] = field(repr=False)
    """Allocations by slot number."""
    sectors: tuple[Bytes, ...] = field(repr=False)
    """For each allocation, the wave of blocks that last accessed each 32-byte sector."""
    parameters: int = 0
    """Address at which constant bank 0, up to the last parameter, is in this memory; 0 if it is not there."""

    def find(self, address: int) -> Allocation | None:
        """Return the allocation to which an address belongs, in or out of bounds; `None` if there is none near.

        An address in the upper half of a slot counts as one before the start of the next slot's allocation.
        """
        return self.allocations.get((address + (1 << (Launch.SLOT_BITS - 1))) >> Launch.SLOT_BITS)

    @property
    def nbytes(self) -> int:
        """Bytes of all allocations together."""
        return sum(allocation.nbytes for allocation in self.allocations.values())


class MemoryMap:
    """Slots of 2^36 bytes of address space with one allocation each, so that an overrun gets to another allocation only
    if it passes the end of the slot.
    """

    def __init__(self) -> None:
        self._allocations: dict[int, Allocation] = {}
        self._textures = TextureMap()
        self._changing = threading.Lock()

    def allocate(self, nbytes: int, *, valid: bool = False, sparse: bool = False) -> Allocation:
        """Allocate `nbytes` bytes of unwritten memory.

        Raises `UsageError` for a size out of range, and `MemoryError` if there is not enough memory or no free slot.

        `valid`: the memory counts as written. `sparse`: only pages that are written take memory of the host; this is
        for memory of which most is never used.
        """
        if nbytes < 0 or nbytes > 1 << Launch.SLOT_BITS:
            raise UsageError(f"an allocation of {nbytes} bytes; the emulator's hold 0 to {1 << Launch.SLOT_BITS}")
        data, shadow = (_mapped(nbytes), _mapped(nbytes)) if sparse else (_aligned(nbytes), np.zeros(nbytes, np.uint8))
        if valid:
            shadow[:] = 0xFF
        with self._changing:
            number = next((n for n in range(1, Launch.SLOT_COUNT) if n not in self._allocations), None)
            if number is None:
                raise MemoryError(f"more than {Launch.SLOT_COUNT - 1} allocations on the emulated device")
            allocation = Allocation(number << Launch.SLOT_BITS, data, shadow)
            self._allocations[number] = allocation
        return allocation

    def free(self, allocation: Allocation) -> None:
        """Free the slot of an allocation and its textures. A launch that has begun can still access the memory."""
        number = allocation.address >> Launch.SLOT_BITS
        with self._changing:
            if self._allocations.get(number) is allocation:
                del self._allocations[number]
                self._textures.forget(allocation.address, allocation.address + (1 << Launch.SLOT_BITS))

    def texture(self, base: int, texels: int, channels: int, element: str) -> int:
        """Return the handle of a texture whose texel 0 is at `base`. Raises `MemoryError` if there are too many."""
        with self._changing:
            return self._textures.handle(base, texels, channels, element)

    def reach(self, parameters: Bytes | None = None) -> Reach:
        """Return the present allocations as the memory of a new launch, with no sector accessed yet.

        `parameters` are bytes that only this launch can access; they take the last free slot.
        """
        with self._changing:
            there, textures = dict(self._allocations), self._textures.table.copy()
        if parameters is not None:
            last = next(number for number in reversed(range(Launch.SLOT_COUNT)) if number not in there)
            there[last] = Allocation(last << Launch.SLOT_BITS, parameters, np.full(parameters.nbytes, 0xFF, np.uint8))
        slots = np.zeros((Launch.SLOT_COUNT, Launch.SLOT_SIZE // 8), np.int64)
        sectors_used = tuple(np.zeros(allocation.nbytes // SECTOR + 1, np.uint8) for allocation in there.values())
        for (number, allocation), sectors in zip(there.items(), sectors_used, strict=True):
            data, valid = allocation.data, allocation.valid
            slots[number] = (data.nbytes, data.ctypes.data, valid.ctypes.data, sectors.ctypes.data)
        return Reach(slots, textures, there, sectors_used, last << Launch.SLOT_BITS if parameters is not None else 0)

    def fill_unwritten(self, byte: int) -> None:
        """Set every byte that nothing has written yet to `byte`; it still counts as unwritten."""
        for allocation in self._allocations.values():
            allocation.data[allocation.valid == 0] = byte

    def write(self, allocation: Allocation, array: npt.NDArray[Any], offset: int = 0) -> None:
        """Copy a C-contiguous array into an allocation, `offset` bytes from its start; these bytes count as written."""
        raw = array.reshape(-1).view(np.uint8)
        allocation.data[offset : offset + raw.nbytes] = raw
        allocation.valid[offset : offset + raw.nbytes] = 0xFF


def _aligned(nbytes: int) -> Bytes:
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes]


def _mapped(nbytes: int) -> Bytes:
    """Return an array of zeros for which the system supplies memory page by page, when a page is first written."""
    flags = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE}
    try:
        return np.frombuffer(mmap.mmap(-1, max(1, nbytes), **flags), np.uint8, nbytes)
    except (OSError, ValueError) as error:
        raise MemoryError(f"no address space for {nbytes} bytes: {error}") from error
