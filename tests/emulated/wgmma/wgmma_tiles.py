"""Tiles for the conformance of wgmma: random and edge operands, reproducible from their names."""

from __future__ import annotations

import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from wgmma_forms import BITS, ROWS, Form

sys.path.append(str(Path(__file__).parents[1] / "conformance"))
from edges import raw

__all__ = [
    "CATEGORIES",
    "Bits",
    "Tile",
    "Words",
    "assemble",
    "categories",
    "chunks",
    "fragments",
    "matrix",
    "raw",
    "tile",
]

Words = npt.NDArray[np.uint32]
Bits = npt.NDArray[np.unsignedinteger]
LAYOUTS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "e4m3": (4, 3), "e5m2": (5, 2), "f32": (8, 23)}
"""Exponent and mantissa bits."""
CATEGORIES = ("bits", "near", "wide", "cancel", "tiny", "special", "edges", "apart", "large")
INTEGER_CATEGORIES = ("bits", "edges")
LEAST = "least"
"""A category apart: accumulators of zero, and products around and below the least float32 number."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Operands of one block: bits of A (64 x depth), of B (columns x depth) and of the accumulator (64 x columns)."""

    a: Bits
    b: Bits
    sums: Bits


def categories(form: Form) -> tuple[str, ...]:
    """The kinds of tiles for a form."""
    return INTEGER_CATEGORIES if form.sums == "s32" else CATEGORIES


def tile(form: Form, category: str, number: int) -> Tile:
    """One tile; the same on every machine."""
    seed = f"wgmma {form.a} {form.b} {form.sums} {form.columns} {category} {number}"
    shapes = ((ROWS, form.depth), (form.columns, form.depth), (ROWS, form.columns))
    if form.sums == "s32":
        a, b = (_integers(f"{seed} {side}", shape, category) for side, shape in zip("ab", shapes, strict=False))
        return Tile(a, b, _int_sums(seed, shapes[2], category))
    a = _floats(form.a, f"{seed} a", shapes[0], category, 0)
    b = _floats(form.b, f"{seed} b", shapes[1], category, 1)
    kind = form.sums
    return Tile(a, b, _sums(form, kind, seed, shapes[2], category))


def _bits_of(kind: str) -> int:
    return BITS.get(kind, 32)


_DTYPES: dict[int, type[np.unsignedinteger]] = {8: np.uint8, 16: np.uint16, 32: np.uint32}


def _dtype(kind: str) -> type[np.unsignedinteger]:
    return _DTYPES[_bits_of(kind)]


def _integers(seed: str, shape: tuple[int, int], category: str) -> Bits:
    bits = raw(seed, shape[0] * shape[1])
    found = (bits >> np.uint64(56)).astype(np.uint8)
    if category == "edges":
        edges = np.array([0, 1, 127, 128, 129, 255], np.uint8)
        found = edges[(bits % np.uint64(edges.size)).astype(np.intp)]
    return found.reshape(shape)


def _int_sums(seed: str, shape: tuple[int, int], category: str) -> Bits:
    bits = raw(f"{seed} c", shape[0] * shape[1])
    found = (bits >> np.uint64(32)).astype(np.uint32)
    if category == "edges":
        edges = np.array([0, 0x7FFFFFFF, 0x80000000, 0x7FFF0000, 0x80010000, 0xFFFFFFFF], np.uint32)
        found = edges[(bits % np.uint64(edges.size)).astype(np.intp)]
    return found.reshape(shape)


def _sums(form: Form, kind: str, seed: str, shape: tuple[int, int], category: str) -> Bits:
    """Accumulators of a category; every fourth tile's are zeros, as at the start of a sum."""
    if zlib.crc32(seed.encode()) % 4 == 0 and category not in {"special", "cancel"}:
        return np.zeros(shape, _dtype(kind))
    found = _floats(kind, f"{seed} c", shape, category, 2)
    del form
    return found


def assemble(kind: str, sign: npt.NDArray[np.uint64], exponent: npt.NDArray[np.int64], mantissa: Bits) -> Bits:
    """Bits of numbers: exponents are clipped to those of normal numbers."""
    width, fraction = LAYOUTS[kind]
    bias, largest = (1 << (width - 1)) - 1, (1 << width) - 2 + (kind == "e4m3")
    field = np.clip(exponent + bias, 1, largest).astype(np.uint64)
    rest = mantissa & np.uint64((1 << fraction) - 1)
    if kind == "e4m3":
        rest = np.where((field == 15) & (rest == 7), np.uint64(6), rest)
    bits = sign << np.uint64(width + fraction) | field << np.uint64(fraction) | rest
    found: Bits = (bits << np.uint64(13) if kind == "tf32" else bits).astype(_dtype(kind))
    return found


def _edge_bits(kind: str, *, special: bool) -> Bits:
    width, fraction = LAYOUTS[kind]
    one, top = 1 << fraction, (1 << width) - 1
    infinity, bias = top << fraction, (1 << (width - 1)) - 1
    largest = (infinity | (one - 2)) if kind == "e4m3" else infinity - 1
    found = [
        0,
        1,
        2,
        one - 1,
        one,
        one + 1,
        2 * one - 1,
        bias << fraction,
        (bias << fraction) + 1,
        largest,
        largest - 1,
    ]
    if special:
        found = [0, 1, bias << fraction, largest, infinity | (one - 1)]
        found += [] if kind == "e4m3" else [infinity, infinity, infinity | (one >> 1)]
    both = [pattern | flip << (width + fraction) for pattern in found for flip in (0, 1)]
    bits = np.array(both, np.uint64)
    return (bits << np.uint64(13) if kind == "tf32" else bits).astype(_dtype(kind))


def _floats(kind: str, seed: str, shape: tuple[int, int], category: str, side: int) -> Bits:
    """Bits of one operand (`side` 0: A, 1: B, 2: the accumulator)."""
    count = shape[0] * shape[1]
    random, other = raw(seed, count), raw(f"{seed} more", count)
    sign, mantissa = random >> np.uint64(63), other >> np.uint64(20)
    choice = (random >> np.uint64(8)).astype(np.int64) & 0xFFFF
    width, _fraction = LAYOUTS[kind]
    bias = (1 << (width - 1)) - 1

    def number(exponent: npt.NDArray[np.int64]) -> Bits:
        return assemble(kind, sign, exponent, mantissa)

    near = number(choice % 5 - 2)
    span = min(bias, 60) if category == "wide" else bias
    if category == "bits":
        found = number(choice % (2 * bias + 1) - bias)
    elif category == "near":
        found = near
    elif category == LEAST:
        # Products of 2^-165 to 2^-125, where a type has them: one more power of two lower in each row.
        lower = np.repeat(np.arange(shape[0]) % 32, shape[1])
        found = (
            np.zeros(count, _dtype(kind))
            if side == 2
            else number(-63 - choice % 5 if side else -62 - lower - choice % 3)
        )
    elif category == "wide":
        found = number(choice % (2 * span) - span if side < 2 else choice % (4 * span) - 2 * span)
    elif category == "cancel":
        found = _cancelling(kind, near, shape, side)
    elif category == "tiny":
        small = _edge_bits(kind, special=False)[:8]
        some = small[choice % small.size]
        low = number(choice % 4 - bias + 1 if side != 1 else choice % (bias + 1) - bias // 2)
        found = np.where(random % np.uint64(3) == 0, some, low)
    elif category == "special":
        edges = _edge_bits(kind, special=True)
        found = np.where(other % np.uint64(24) == 0, edges[choice % edges.size], near)
    elif category == "edges":
        edges = _edge_bits(kind, special=False)
        found = edges[choice % edges.size]
    elif category == "apart":
        # One large product among small ones: what is lost depends on the bits that are preserved.
        far = -(choice % 20 + 6) if side == 0 else choice % 3 if side == 1 else -(choice % 34)
        big = (np.arange(count) % shape[1] == shape[0] % max(shape[1], 1)) & (side == 0)
        found = np.where(big, number(np.zeros(count, np.int64)), number(far))
    else:
        found = number(bias - choice % 3 if side == 0 else choice % 6 + (bias // 8 if side == 2 else -2))
    return found.astype(_dtype(kind)).reshape(shape)


def _cancelling(kind: str, near: Bits, shape: tuple[int, int], side: int) -> Bits:
    """Neighbours in k are opposite in A and nearly equal in B; accumulators are small."""
    if side == 2:
        return near
    pairs = near.reshape(shape).copy()
    top = np.array(1 << (_bits_of(kind) - 1), pairs.dtype)
    low = np.array(1 << (13 if kind == "tf32" else 0), pairs.dtype)
    pairs[:, 1::2] = pairs[:, ::2] ^ (top if side == 0 else low)
    return pairs.reshape(-1)


def chunks(bits: Bits) -> Words:
    """Rows of an operand as 32-bit words, 8 in each row."""
    return np.ascontiguousarray(bits).view(np.uint32)


def fragments(form: Form, sums: Bits) -> Words:
    """Accumulators (64 x columns) as the threads hold them: 128 x words."""
    thread = np.arange(128)
    row = thread // 32 * 16 + thread % 32 // 4
    column = 2 * (thread % 4)
    block, half, odd = np.meshgrid(np.arange(form.columns // 8), np.arange(2), np.arange(2), indexing="ij")
    rows = row[:, None] + 8 * half.reshape(-1)[None]
    columns = column[:, None] + (8 * block + odd).reshape(-1)[None]
    return np.ascontiguousarray(sums[rows, columns]).view(np.uint32)


def matrix(form: Form, words: Words) -> Bits:
    """The inverse of `fragments`."""
    dtype = _dtype(form.sums)
    index = np.arange(ROWS * form.columns, dtype=np.uint32).reshape(ROWS, form.columns)
    places = fragments(Form(form.a, form.b, "f32", form.columns), index)
    found = np.empty(ROWS * form.columns, dtype)
    found[places.reshape(-1)] = np.ascontiguousarray(words).view(dtype).reshape(-1)
    return found.reshape(ROWS, form.columns)
