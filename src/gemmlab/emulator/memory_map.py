"""Device memory of the emulator: allocations far apart in a 64-bit address space, each with what of it was written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.emulator.layout import Launch
from gemmlab.emulator.texture_map import TextureMap

Bytes = npt.NDArray[np.uint8]
SECTOR = 32
ALIGNMENT = 256
"""What every allocation's address is a multiple of, as on a GPU."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """`address` is what kernels receive; `data` the bytes; `valid` 0xFF for each byte that was written."""

    address: int
    data: Bytes = field(repr=False)
    valid: Bytes = field(repr=False)
    touched: Bytes = field(repr=False)
    """The wave of blocks that last accessed each 32-byte sector."""

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes)


class MemoryMap:
    """Slots of 2^36 bytes of address space, one allocation each, so that running over an end hits nothing."""

    def __init__(self) -> None:
        self.slots = np.zeros((Launch.SLOT_COUNT, Launch.SLOT_SIZE // 8), np.int64)
        self._held: dict[int, Allocation] = {}
        self.textures = TextureMap()

    def allocate(self, nbytes: int, *, valid: bool = False) -> Allocation:
        """Memory nothing has written yet (`valid`: count it as written). `MemoryError` when there is none."""
        if nbytes < 0 or nbytes > 1 << Launch.SLOT_BITS:
            raise UsageError(f"an allocation of {nbytes} bytes; the emulator's hold 0 to {1 << Launch.SLOT_BITS}")
        number = next((n for n in range(1, Launch.SLOT_COUNT) if n not in self._held), None)
        if number is None:
            raise MemoryError(f"more than {Launch.SLOT_COUNT - 1} allocations on the emulated device")
        data = _aligned(nbytes)
        shadow = np.full(nbytes, 0xFF if valid else 0, np.uint8)
        touched = np.zeros(nbytes // SECTOR + 1, np.uint8)
        allocation = Allocation(number << Launch.SLOT_BITS, data, shadow, touched)
        self._held[number] = allocation
        self.slots[number] = (nbytes, data.ctypes.data, shadow.ctypes.data, touched.ctypes.data)
        return allocation

    def free(self, allocation: Allocation) -> None:
        """Give an allocation's address space back; textures over it are gone."""
        number = allocation.address >> Launch.SLOT_BITS
        if self._held.pop(number, None) is not None:
            self.slots[number] = 0
            self.textures.forget(allocation.address, allocation.address + (1 << Launch.SLOT_BITS))

    def find(self, address: int) -> Allocation | None:
        """The allocation whose slot an address lies in."""
        return self._held.get(address >> Launch.SLOT_BITS)

    @property
    def nbytes(self) -> int:
        """Of all allocations."""
        return sum(allocation.nbytes for allocation in self._held.values())

    def forget_touches(self) -> None:
        """Begin to count distinct sectors anew."""
        for allocation in self._held.values():
            allocation.touched[:] = 0

    def write(self, allocation: Allocation, array: npt.NDArray[Any]) -> None:
        """Copy a C-contiguous array to the start of an allocation."""
        raw = array.reshape(-1).view(np.uint8)
        allocation.data[: raw.nbytes] = raw
        allocation.valid[: raw.nbytes] = 0xFF


def _aligned(nbytes: int) -> Bytes:
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes]
