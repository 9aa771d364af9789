"""Tensor copies for the conformance of the emulator: random maps, boxes and places, the same on every machine."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from one_cubin import one_cubin

from gemmlab import TensorMap, launch
from gemmlab.core.tensor_map import BY_NAME, SWIZZLES, TYPES, UNEVEN_ROWS, TiledMap, packed_strides

KERNELS = Path(__file__).parent / "box_bits.cu"
WORDS, PIECES = 4096, 16
"""Words of shared memory, and the pieces of memory that have a checksum each."""
MOST_ELEMENTS = 1 << 15
COPIES = 320
Words = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class BoxCopy:
    """A load or store of one box. Extents are in the order of the array's axes, the corner the innermost first."""

    number: int
    way: str
    kind: str
    shape: tuple[int, ...]
    """The array's extents."""
    extents: tuple[int, ...]
    """The tensor's extents: it may be smaller."""
    box: tuple[int, ...]
    steps: tuple[int, ...]
    corner: tuple[int, ...]
    swizzle: int
    interleave: int
    fill: str

    @property
    def name(self) -> str:
        return f"{self.way}_{self.number:03}"

    @property
    def array(self) -> npt.NDArray[Any]:
        """Random bytes."""
        size = BY_NAME[self.kind.upper()].nbytes
        data = np.random.Generator(np.random.PCG64(self.number)).bytes(size * prod(self.shape))
        return np.frombuffer(data, f"u{size}").reshape(self.shape).copy()

    def tensor(self, array: npt.NDArray[Any]) -> TensorMap:
        return TensorMap(array, self.box, dtype=self.kind, shape=self.extents, swizzle=self.swizzle,
                         interleave=self.interleave, fill=self.fill, element_strides=self.steps)  # fmt: skip

    def tiled(self) -> TiledMap:
        """The map, if the array lies at address 0. The driver may refuse it."""
        kind = BY_NAME[self.kind.upper()]
        return TiledMap(
            kind, 0, self.extents[::-1], packed_strides(self.shape[::-1], kind.nbytes), self.box[::-1],
            self.steps[::-1], self.interleave, self.swizzle, 0, self.fill,
        )  # fmt: skip

    def words(self, device: str, expected: int = 0) -> Words:
        """Checksums of pieces of shared memory after a load, then the number of its bytes, which the kernel counts if
        it is not given; of a store those of the array.
        """
        array, loads = self.array, self.way == "load"
        memory = np.random.Generator(np.random.PCG64(1000)).integers(0, 1 << 32, WORDS, np.uint32)
        corner = [np.int32(value) for value in (*self.corner, 0, 0, 0, 0)][:5]
        args = [self.tensor(array), memory, np.full(1, expected, np.uint32), *corner, np.uint32(expected)]
        kernel = f"{self.way}{len(self.box)}"
        code = one_cubin(str(KERNELS), "load1", device)
        done: Any = launch(code, kernel, 1, 128, args, device=device, timeout_s=10)
        if done.hazards:
            raise RuntimeError(f"{self.name}: {done.hazards[0].explain()}")
        found = np.ascontiguousarray(done.outputs[1 if loads else 0]).view(np.uint8).reshape(-1)
        sums = [zlib.crc32(piece.tobytes()) for piece in np.array_split(found, PIECES)]
        return np.array(sums + [int(done.outputs[2][0])] * loads, np.uint32)


def box_copies() -> Iterator[BoxCopy]:
    """Copies that the driver takes, of layouts that the emulator runs, with all their bytes in the array."""
    return (case for case in _numbered() if not case.tiled().problems())


def refused_copies() -> Iterator[BoxCopy]:
    """Copies of interleaved boxes that the driver refuses for their innermost extent."""
    return (case for case in _numbered() if case.tiled().problems())


def _numbered() -> Iterator[BoxCopy]:
    """`COPIES` copies. Those that the driver refuses have numbers too: the record's names count them."""
    rng, number = random.Random(16), 0  # noqa: S311 - test data
    while number < COPIES:
        case = _drawn(rng, number)
        if case is not None and _possible(case):
            yield case
            number += 1


def _drawn(rng: random.Random, number: int) -> BoxCopy | None:
    kind, rank = rng.choice(TYPES), rng.randint(1, 5)
    interleave = rng.choice((16, 32)) if rank > 2 and rng.random() < 0.25 else 0
    swizzle = 32 * (interleave == 32) if interleave else rng.choice(SWIZZLES)
    unit = 16 // kind.nbytes
    inner = rng.randint(1, 8) * unit if not swizzle or interleave else swizzle // kind.nbytes
    box = (*(rng.choice((1, 2, 3, 4, 7, 16)) for _ in range(rank - 1)), inner)
    steps = tuple(rng.choice((1, 1, 1, 2, 3)) for _ in range(rank))
    if interleave:
        box = (box[0], rng.randint(1, interleave // kind.nbytes), *box[2:-1], rng.randint(1, 8))
        steps = (steps[0], 1, *steps[2:])
    shape = (*(rng.choice((1, 2, 5, 9, 20)) for _ in range(rank - 1)), rng.randint(1, 6) * 2 * unit)
    extents = tuple(max(1, extent - rng.choice((0, 0, 1, 3))) for extent in shape)
    if prod(shape) > MOST_ELEMENTS:
        return None
    way = "store" if number % 3 == 2 else "load"
    least = 0 if way == "store" else -2
    corner = [rng.randint(least * (rng.random() < 0.4), max(0, extent - 1)) for extent in reversed(extents)]
    if not interleave:
        corner[0] = rng.randint(2 * least, max(0, extents[-1] // unit)) * unit
    fill = "nan" if kind.floating and rng.random() < 0.5 else "zeros"
    return BoxCopy(number, way, kind.name.lower(), shape, extents, box, steps, tuple(corner), swizzle, interleave, fill)


def _possible(case: BoxCopy) -> bool:
    tensor = case.tiled()
    if any(not problem.startswith(UNEVEN_ROWS) for problem in tensor.problems()):
        return False
    if tensor.span > 4 * WORDS or (tensor.interleave and tensor.slices[-2] > 1) or tensor.pitch > tensor.row_bytes:
        return False
    strides = (tensor.interleave or tensor.type.nbytes, *tensor.strides)
    # The places of an interleaved tensor are wider than its elements: those of the box must still be in the array.
    ends = (max(min(start + (count - 1) * step, extent - 1), 0) * stride
            for start, count, step, extent, stride in zip(
                case.corner, tensor.slices, tensor.element_strides, tensor.shape, strides, strict=True))  # fmt: skip
    return sum(ends) + strides[0] <= prod(case.shape) * tensor.type.nbytes
