"""Which bytes of shared memory a descriptor names: shared memory holds its own addresses, and wgmma selects them.

One operand is one-hot, so that every result is one element of the other. The elements are numbers that a type holds
exactly: the low part of their index, and in a second launch the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from wgmma_forms import PRELUDE, ROWS, Form, multiply
from wgmma_tiles import raw

IMAGE = 1 << 16
"""Bytes of shared memory that hold their own addresses; the one-hot operand lies behind them."""
MODES = {"none": (0, 16), "128": (1, 128), "64": (2, 64), "32": (3, 32)}
"""Swizzles by name: their number in a descriptor, and the bytes of a row."""
ONE = {"f16": 0x3C00, "tf32": 0x3F800000, "u8": 1}
DTYPES: dict[str, type[np.unsignedinteger]] = {"f16": np.uint16, "tf32": np.uint32, "u8": np.uint8}
Index = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The place of an operand, in bytes from the start of dynamic shared memory, which is aligned to 1024 bytes."""

    start: int
    leading: int
    stride: int
    base: int
    mode: int

    @property
    def word(self) -> int:
        """The descriptor for a start at shared address 0."""
        return self.start >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32 | self.base << 49 | self.mode << 62


@dataclass(frozen=True, slots=True)
class Map:
    """One operand of one type, K-major or transposed."""

    kind: str
    side: str
    transposed: bool

    @property
    def form(self) -> Form:
        """The form that reads it. A's elements are selected by a one-hot B of as many columns as A has in k."""
        sums = "s32" if self.kind == "u8" else "f32"
        if self.side == "b":
            return Form(self.kind, self.kind, sums, 64, registers=True, transposed=(0, int(self.transposed)))
        columns = {"f16": 16, "tf32": 8, "u8": 32}[self.kind]
        return Form(self.kind, self.kind, sums, columns, transposed=(int(self.transposed), 0))

    @property
    def name(self) -> str:
        """The kernel's name."""
        return f"map_{self.side}_{self.form.name}"


MAPS = tuple(
    Map(kind, side, transposed)
    for kind in ONE
    for side in "ab"
    for transposed in ((False, True) if kind == "f16" else (False,))
)


def descriptors() -> Iterator[Descriptor]:
    """Canonical layouts, starts inside of an atom, odd distances, base offsets, and random ones."""
    for name, (mode, width) in MODES.items():
        atom = 8 * width
        yield Descriptor(0, 128 if name == "none" else 16, 256 if name == "none" else atom, 0, mode)
        yield Descriptor(3 * 1024, 8 * atom, atom, 0, mode)
        yield Descriptor(0, 1024, 8192 if width == 16 else 2048, 0, mode)
        for start in (16, 32, 64, 96, 128, 256, 640):
            yield Descriptor(1024 + start, 2 * atom, atom, 0, mode)
        for base in (1, 2, 3, 5, 7):
            yield Descriptor(2048 + 128 * base, 2 * atom, atom, base, mode)
            yield Descriptor(2048, 2 * atom, atom, base, mode)
        bits = raw(f"descriptors {name}", 40)
        for number in range(8):
            start, leading, stride, base = (int(bits[5 * number + part] >> np.uint64(8)) for part in range(4))
            yield Descriptor(start % 1024 * 16, leading % 190 * 16, stride % 190 * 16, base % 8, mode)


def source(what: Map) -> str:
    """A file with the kernel of a map. A block tries one descriptor."""
    form = what.form
    behind = f"field({IMAGE}) + start + (field(128) << 16 | field(256) << 32)"
    moving = "words[blockIdx.x] + start"
    a, b = (behind, moving) if what.side == "b" else (moving, behind)
    return (
        PRELUDE
        + multiply(form)
        + f"""
extern "C" __global__ void __launch_bounds__(128) {what.name}(
    const uint4 *image, const uint4 *one, const u64 *words, unsigned *out
) {{
    extern __shared__ __align__(1024) uint4 memory[];
    for (int i = threadIdx.x; i < {IMAGE // 16}; i += 128) memory[i] = image[i];
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, word = threadIdx.x % 4;
    for (int i = threadIdx.x; i < {2 * (ROWS if what.side == "b" else form.columns)}; i += 128)
        memory[{IMAGE // 16} + i / 16 * 16 + i % 2 * 8 + i / 2 % 8] = one[i];
    unsigned frag[4], d[{form.words}] = {{}};
    for (int i = 0; i < 4; ++i)
        frag[i] = {"((const unsigned *)one)[(row + i % 2 * 8) * 8 + word + i / 2 * 4]" if what.side == "b" else "0"};
    publish();
    u64 start = field(at_shared(memory));
    fence();
    multiply_{form.name}(d, frag, {a}, {b}, 1);
    commit_and_wait();
    for (int i = 0; i < {form.words}; ++i) out[((size_t)blockIdx.x * 128 + threadIdx.x) * {form.words} + i] = d[i];
}}
"""
    )


def images(what: Map) -> tuple[tuple[npt.NDArray[np.uint8], int], ...]:
    """Two images of shared memory as bytes, each with the factor of its numbers in an element's index."""
    index = np.arange(IMAGE // np.dtype(DTYPES[what.kind]).itemsize)
    if what.kind == "u8":
        return ((index & 255).astype(np.uint8), 1), ((index >> 8).astype(np.uint8), 256)
    return tuple((_bits(what.kind, part), factor) for part, factor in ((index & 1023, 1), (index >> 10, 1024)))


def _bits(kind: str, numbers: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.uint8]:
    dtype = np.float16 if kind == "f16" else np.float32
    return numbers.astype(dtype).view(np.uint8)


def one_hot(what: Map) -> npt.NDArray[np.uint8]:
    """Rows of the one-hot operand: A (64 x depth) selects rows of B, B (columns x depth) selects columns of A."""
    rows, depth = (ROWS if what.side == "b" else what.form.columns), what.form.depth
    found = np.zeros((rows, depth), DTYPES[what.kind])
    found[np.arange(rows), np.arange(rows) % depth] = ONE[what.kind]
    return found.view(np.uint8).reshape(-1)


def numbers(what: Map, words: npt.NDArray[np.uint32]) -> Index:
    """Results as whole numbers, 128 threads x words for each block."""
    shape = (-1, 128, what.form.words)
    return (words.view(np.int32) if what.kind == "u8" else words.view(np.float32)).reshape(shape).astype(np.int64)


__all__ = ["MAPS", "Descriptor", "Map", "descriptors", "images", "numbers", "one_hot", "source"]
