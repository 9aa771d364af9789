"""The 128 bytes of a CUtensorMap for tiled copies: encode them without a driver, decode them, and check them as the
driver does.

The places of the fields that `tensormap.replace` (PTX) can change were read from the machine code that ptxas makes of
it. Encoded maps equal those of an H200's driver in all bytes (`benchmarks/results/h200/tensor_maps.json`).

    byte    0  global address, 64 bits
            8  31 ..          19   18 17      16        15    14 13    12 11       10 .. 7   6 .. 4    3 .. 0
               zeros               promotion  TF32      fill  swizzle  interleave  type      rank - 1  zeros
           12  stride of dimensions 1 to 4 / 16, 32 bits each; the upper 4 bits of each are at byte 28
           32  extents of dimensions 0 to 4, minus 1, 32 bits each
           52  element strides minus 1, 3 bits each; bits 24 to 31 and the four bytes at 56: extents of the box, minus 1
           64  bytes of the box, every extent divided by its element stride and rounded down; 64 bits
           72  bytes after which the swizzle's pattern repeats (16 without one); 32 bits
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from itertools import pairwise

from gemmlab.core.errors import UsageError
from gemmlab.core.words import counted

BYTES = 128
_STATED, _STATED_AT = struct.Struct("<Q"), 64
"""The format of the number of bytes of a box, and its place in a map."""
MOST_DIMENSIONS = 5
MOST_BOX, MOST_ELEMENT_STRIDE, STRIDE_LIMIT = 256, 8, 1 << 40
MOST_BOX_BYTES = 227 * 1024
"""Bytes of the largest box: the largest shared memory of a block."""
INNERMOST_FIRST = " (innermost first)"
"""Words after extents that are in the driver's order."""
UNEVEN_ROWS = "the box's innermost extent is no multiple of 16 bytes"
"""Words for a box that the driver refuses in every layout."""
PATTERNS = {0: 16, 32: 256, 64: 512, 128: 1024}
"""Swizzle in bytes -> bytes after which its pattern repeats."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """A type of a tensor's elements."""

    name: str
    """Name in the driver's enumeration, without the prefix `CU_TENSOR_MAP_DATA_TYPE_`."""
    nbytes: int
    code: int
    """The number that stands for the type in a map."""
    tf32: bool = False

    @property
    def floating(self) -> bool:
        return "FLOAT" in self.name


TYPES = (
    ElementType("UINT8", 1, 0),
    ElementType("UINT16", 2, 1),
    ElementType("UINT32", 4, 2),
    ElementType("INT32", 4, 3),
    ElementType("UINT64", 8, 4),
    ElementType("INT64", 8, 5),
    ElementType("FLOAT16", 2, 6),
    ElementType("FLOAT32", 4, 7),
    ElementType("FLOAT64", 8, 9),
    ElementType("BFLOAT16", 2, 10),
    ElementType("FLOAT32_FTZ", 4, 8),
    ElementType("TFLOAT32", 4, 7, tf32=True),
    ElementType("TFLOAT32_FTZ", 4, 8, tf32=True),
)
"""The types of elements that a tensor map can have, except those of 4 and 6 bits, in the driver's order."""
BY_NAME = {each.name: each for each in TYPES}
INTERLEAVES, SWIZZLES, PROMOTIONS, FILLS = (0, 16, 32), (0, 32, 64, 128), (0, 64, 128, 256), ("zeros", "nan")
"""Possible values (bytes, except for fills), each at the index that stands for it in a map and in the driver's
enumeration.
"""


@dataclass(frozen=True, slots=True)
class TiledMap:
    """A tensor map. Dimensions are in the driver's order: the innermost one, which is contiguous, comes first."""

    type: ElementType
    address: int
    shape: tuple[int, ...]
    """Extents of the tensor in elements."""
    strides: tuple[int, ...]
    """Strides in bytes of all dimensions but the first."""
    box: tuple[int, ...]
    """Extents in elements of the part of the tensor that one copy spans (the box)."""
    element_strides: tuple[int, ...]
    """Steps in elements: with 2 in a dimension every second element of the box is copied (but see `copied`)."""
    interleave: int = 0
    swizzle: int = 0
    promotion: int = 0
    fill: str = "zeros"

    @property
    def copied(self) -> tuple[int, ...]:
        """Elements that one copy moves in each dimension.

        The element stride of the first dimension counts only in an interleaved layout.
        """
        steps = self.element_strides if self.interleave else (1, *self.element_strides[1:])
        return tuple(-(-extent // step) for extent, step in zip(self.box, steps, strict=True))

    @property
    def stated_bytes(self) -> int:
        """Bytes of the box as the encoded map states them: every extent divided by its element stride, rounded down."""
        extents = (extent // step for extent, step in zip(self.box, self.element_strides, strict=True))
        return self.type.nbytes * math.prod(extents)

    @property
    def slices(self) -> tuple[int, ...]:
        """Extents of a copy in units of one element, or in an interleaved layout of `interleave` (16 or 32) bytes.

        In an interleaved layout one unit has several channels, so the last but one dimension, the channels, has as many
        units as its elements need.
        """
        found = list(self.copied)
        if self.interleave:
            found[-2] = -(-found[-2] * self.type.nbytes // self.interleave)
        return tuple(found)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of a box: its innermost dimension, as it is copied."""
        return self.slices[0] * (self.interleave or self.type.nbytes)

    @property
    def pitch(self) -> int:
        """Distance in bytes of two rows of a box in shared memory.

        It is at least the swizzle, except in an interleaved layout: the rest of a shorter row stays unused.
        """
        return self.row_bytes if self.interleave else max(self.row_bytes, self.swizzle)

    @property
    def nbytes(self) -> int:
        """Bytes that one copy moves."""
        return self.row_bytes * math.prod(self.slices[1:])

    @property
    def span(self) -> int:
        """Bytes from the start of a box to its end in shared memory, the unused ends of rows included."""
        return self.pitch * math.prod(self.slices[1:])

    def require_valid(self) -> None:
        """Raise `UsageError` with the first problem if the driver would refuse the map."""
        for problem in self.problems():
            raise UsageError(f"tensor map: {problem}")

    def problems(self) -> list[str]:
        """Return in words the reasons why the driver would refuse the map; empty for a valid map."""
        rank = len(self.shape)
        if not 1 <= rank <= MOST_DIMENSIONS:
            return [f"{rank} dimensions; there are 1 to {MOST_DIMENSIONS}"]
        if (len(self.strides), len(self.box), len(self.element_strides)) != (rank - 1, rank, rank):
            return [f"a box or strides of other than {rank} dimensions"]
        found = []
        first = " (0 is the innermost)" if rank > 1 else ""
        unit = 32 if self.interleave == 32 else 16
        if self.address % unit:
            found.append(f"address 0x{self.address:x} is no multiple of {unit}")
        for number, extent in enumerate(self.shape):
            if not 1 <= extent <= 1 << 32:
                found.append(f"extent {extent} of dimension {number}{first} is not 1 to 2^32")
        for number, stride in enumerate(self.strides, 1):
            if stride % unit or not 0 <= stride < STRIDE_LIMIT:
                found.append(
                    f"the stride of dimension {number}{first} is {stride} bytes; it must be a multiple of {unit} below"
                    " 2^40"
                )
        for number, extent in enumerate(self.box):
            if not 1 <= extent <= MOST_BOX:
                found.append(
                    f"the box has {extent} elements in dimension {number}{first}; 1 to {MOST_BOX} are possible"
                )
        for number, step in enumerate(self.element_strides):
            if not 1 <= step <= MOST_ELEMENT_STRIDE:
                found.append(f"element stride {step} of dimension {number}{first} is not 1 to {MOST_ELEMENT_STRIDE}")
        if not found and self.stated_bytes > MOST_BOX_BYTES:
            found.append(f"the box has {self.stated_bytes} bytes; at most {MOST_BOX_BYTES} are possible")
        return found + self._layout_problems()

    def _layout_problems(self) -> list[str]:
        found = []
        inner = self.box[0] * self.type.nbytes
        # An H200's driver also refuses it with an interleaved layout, for which its manual does not name the rule.
        if inner % 16:
            found.append(f"{UNEVEN_ROWS}: {self.box[0]} elements of {self.type.name} are {inner} bytes")
        if self.interleave == 0:
            if self.swizzle and inner > self.swizzle:
                found.append(f"the box's rows have {inner} bytes; swizzle {self.swizzle} takes at most {self.swizzle}")
        elif len(self.shape) < 3:
            found.append(f"interleave {self.interleave} needs 3 dimensions or more")
        for name, value, known in (
            ("interleave", self.interleave, INTERLEAVES), ("swizzle", self.swizzle, SWIZZLES),
            ("promotion", self.promotion, PROMOTIONS), ("fill", self.fill, FILLS),
        ):  # fmt: skip
            if value not in known:
                found.append(f"{name} {value!r}; there are {', '.join(map(str, known))}")
        if self.fill == "nan" and not self.type.floating:
            found.append(f"fill with NaN needs a floating-point type, not {self.type.name}")
        return found

    def encode(self) -> bytes:
        """Return the 128 bytes of the map. Raises `UsageError` for a map that the driver would refuse."""
        self.require_valid()
        rank = len(self.shape)
        word = (rank - 1) << 4 | self.type.code << 7 | INTERLEAVES.index(self.interleave) << 11
        word |= SWIZZLES.index(self.swizzle) << 13 | FILLS.index(self.fill) << 15 | self.type.tf32 << 16
        word |= PROMOTIONS.index(self.promotion) << 17
        units = [stride >> 4 for stride in _padded(self.strides, 0, MOST_DIMENSIONS - 1)]
        upper = sum((unit >> 32) << 4 * number for number, unit in enumerate(units))
        extents = [extent - 1 for extent in _padded(self.shape, 1)]
        steps = sum((step - 1) << 3 * number for number, step in enumerate(_padded(self.element_strides, 1)))
        box = [extent - 1 for extent in _padded(self.box, 1)]
        fields = [word, *(unit & 0xFFFFFFFF for unit in units), upper, *extents, steps | box[0] << 24]
        body = struct.pack("<Q12I4B", self.address, *fields, *box[1:])
        tail = struct.pack("<4xQI", self.stated_bytes, PATTERNS[self.swizzle])
        return (body + tail).ljust(BYTES, b"\0")

    def describe(self) -> str:
        """Return the map in words: `"FLOAT16 4096 x 512 (innermost first) at 0x1000, box 64 x 128, swizzle 128"`."""
        notes = [f"{name} {value}" for name, value in (
            ("interleave", self.interleave), ("swizzle", self.swizzle), ("promotion", self.promotion),
        ) if value]  # fmt: skip
        notes += ["fill nan"] if self.fill == "nan" else []
        if set(self.element_strides) != {1}:
            notes.append(f"element strides {' x '.join(map(str, self.element_strides))}")
        shape, box = (" x ".join(map(str, extents)) for extents in (self.shape, self.box))
        order = INNERMOST_FIRST if len(self.shape) > 1 else ""
        return ", ".join([f"{self.type.name} {shape}{order} at 0x{self.address:x}", f"box {box}", *notes])

    def describe_box(self) -> str:
        """Return what one copy moves in words: `"a box of 64 x 128 (innermost first) of FLOAT16: 16,384 bytes"`."""
        order = INNERMOST_FIRST if len(self.box) > 1 else ""
        return f"a box of {' x '.join(map(str, self.box))}{order} of {self.type.name}: {counted(self.nbytes, 'byte')}"


def _padded(values: tuple[int, ...], filler: int, length: int = MOST_DIMENSIONS) -> list[int]:
    return [*values, *[filler] * (length - len(values))]


def decode(data: bytes) -> TiledMap:
    """Return the map that 128 bytes encode. Raises `UsageError` for bytes that are no map for tiled copies.

    Values are not checked further (see `TiledMap.problems`).
    """
    if len(data) != BYTES:
        raise UsageError(f"tensor map: {len(data)} bytes; a map has {BYTES}")
    address, word, *fields = struct.unpack_from("<Q12I4B", data)
    units, upper, extents, steps, box = fields[:4], fields[4], fields[5:10], fields[10], fields[11:]
    rank = (word >> 4 & 7) + 1
    kinds = [each for each in TYPES if (each.code, each.tf32) == (word >> 7 & 15, bool(word >> 16 & 1))]
    if not kinds or rank > MOST_DIMENSIONS or word >> 11 & 3 == 3:
        raise UsageError("tensor map: these bytes are no map for tiled copies")
    sizes = [(steps >> 24) + 1, *(extent + 1 for extent in box)]
    return TiledMap(
        type=kinds[0],
        address=address,
        shape=tuple(extent + 1 for extent in extents[:rank]),
        strides=tuple((unit | (upper >> 4 * number & 15) << 32) << 4 for number, unit in enumerate(units[: rank - 1])),
        box=tuple(sizes[:rank]),
        element_strides=tuple((steps >> 3 * number & 7) + 1 for number in range(rank)),
        interleave=INTERLEAVES[word >> 11 & 3],
        swizzle=SWIZZLES[word >> 13 & 3],
        promotion=PROMOTIONS[word >> 17 & 3],
        fill=FILLS[word >> 15 & 1],
    )


def packed_strides(shape: tuple[int, ...], nbytes: int) -> tuple[int, ...]:
    """Return the strides in bytes (`TiledMap.strides`) of a tensor without gaps, whose elements have `nbytes` bytes."""
    strides, stride = [], nbytes
    for extent, _ in pairwise(shape):
        stride *= extent
        strides.append(stride)
    return tuple(strides)


def box_bytes(encoded: bytes) -> int:
    """Return the number of bytes of a box (`TiledMap.stated_bytes`) that an encoded map states."""
    return int(_STATED.unpack_from(encoded, _STATED_AT)[0])
