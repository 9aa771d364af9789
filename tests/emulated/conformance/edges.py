"""Inputs of the conformance kernels: edge values mixed with random ones, the same on every machine and NumPy.

A kind names what an operand is (`elementwise.cuh`); its values are raw bits. Random bits come from SplitMix64, so that
nothing depends on a library's generator.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.unsignedinteger]

DTYPES: dict[str, type[np.unsignedinteger]] = {
    "u8": np.uint8, "s8": np.uint8, "u16": np.uint16, "s16": np.uint16, "f16": np.uint16, "bf16": np.uint16,
    "u64": np.uint64, "s64": np.uint64, "f64": np.uint64,
}  # fmt: skip
"""What holds one value; 32 bits for all other kinds."""

INTEGERS = (0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 100, 127, 128, 255, 256, 1000, 10000)
COUNTS = (
    0,
    1,
    2,
    5,
    15,
    16,
    17,
    30,
    31,
    32,
    33,
    34,
    47,
    48,
    62,
    63,
    64,
    65,
    96,
    127,
    128,
    255,
    256,
    1 << 31,
    2**32 - 1,
)
FIELDS = (0, 1, 2, 4, 7, 8, 15, 16, 24, 30, 31, 32, 33, 40, 63, 64, 65, 128, 254, 255, 256, 300)
SELECTORS = (
    0x3210, 0x7654, 0x0123, 0x4567, 0x5410, 0x7632, 0x0000, 0x7777, 0x8888, 0xFFFF, 0x89AB, 0xFEDC, 0x9910, 0x8880,
    0x4440, 0x12345678, 0xFFFF0000,
)  # fmt: skip
SIGNIFICANDS = (0.5, 1 / 3, 0.9999999, 1.0, 1.0000001, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 100.0, 127.5, 128.5, 255.5, 256.0)
WHOLE = (32767.0, 32767.5, 32768.0, 65504.0, 65519.0, 65520.0, 65535.5, 65536.0, 8388607.5, 8388608.0, 16777215.0)
POWERS = (24, 31, 32, 53, 63, 64, 100, 126, -10, -14, -24, -25, -40, -100, -126)


def raw(seed: str, count: int, dtype: npt.DTypeLike = np.uint64) -> Bits:
    """Random bits: SplitMix64 from the CRC of a text."""
    with np.errstate(over="ignore"):
        state = np.uint64(zlib.crc32(seed.encode())) * np.uint64(0x100000001)
        z = state + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    shift = np.uint64(64 - 8 * np.dtype(dtype).itemsize)
    return (z >> shift).astype(dtype)


def values(kind: str, seed: str, count: int) -> Bits:
    """`count` values of a kind for one operand, named by `seed`.

    The first come in order, so that a kernel of one operand sees every edge; then edges in random order, so that
    operands meet in many pairs; every fourth is random bits and every fourth of a moderate size.
    """
    if kind in SPECIAL:
        return SPECIAL[kind](seed, count)
    dtype = np.dtype(DTYPES.get(kind, np.uint32))
    edges = _edges(kind, dtype)
    random = raw(seed, count)
    chosen = edges[(random % np.uint64(edges.size)).astype(np.intp)]
    chosen[: min(count, edges.size)] = edges[:count]
    free = np.arange(count) >= edges.size
    bits, middle = raw(seed + " bits", count, dtype), _moderate(kind, seed, count, dtype)
    place = random >> np.uint64(60)
    chosen = np.where(free & (place < 4), bits, chosen)
    return np.where(free & (place >= 12), middle, chosen).astype(dtype)


def _edges(kind: str, dtype: np.dtype[np.unsignedinteger]) -> Bits:
    if kind in FLOATS:
        return FLOATS[kind]()
    width = 8 * dtype.itemsize
    top, every = 1 << (width - 1), (1 << width) - 1
    alternating = every // 3
    wanted = [*INTEGERS, top - 1, top, top + 1, every, every - 1, alternating, alternating * 2, every >> 4, every - 99]
    for power in (8, 16, 24, 31, 32, 33, 48, 63):
        wanted += [(1 << power) - 1, 1 << power, (1 << power) + 1]
    return np.array(list(dict.fromkeys(value & every for value in wanted)), np.uint64).astype(dtype)


def _moderate(kind: str, seed: str, count: int, dtype: np.dtype[np.unsignedinteger]) -> Bits:
    """Numbers around one, or small integers, of both signs."""
    bits = raw(seed + " moderate", count)
    sign = np.where(bits >> np.uint64(63), -1.0, 1.0)
    numbers = sign * ((bits & np.uint64(0xFFFFF)).astype(np.float64) / 2**17 + 2.0**-20)
    if kind in {"f32", "f64", "f16", "bf16"}:
        return numbers_of(kind, numbers)
    if kind in {"f16x2", "bf16x2"}:
        return _pair(_moderate(kind[:-2], seed + " low", count, np.dtype(np.uint16)), numbers_of(kind[:-2], numbers))
    small: Bits = ((bits >> np.uint64(40) & np.uint64(0xFFF)).astype(np.int64) - 0x800).astype(dtype)
    return small


def numbers_of(kind: str, numbers: npt.NDArray[np.float64]) -> Bits:
    """Bits of numbers in a format, rounded to nearest (bf16: towards zero)."""
    if kind == "bf16":
        return (numbers.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    with np.errstate(over="ignore"):
        rounded = numbers.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[kind])
    found: Bits = rounded.view(DTYPES.get(kind, np.uint32))
    return found


def _pair(low: Bits, high: Bits) -> Bits:
    return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)


def _float_edges(kind: str, exponent_bits: int, mantissa_bits: int) -> Bits:
    width = exponent_bits + mantissa_bits + 1
    infinity, sign = ((1 << exponent_bits) - 1) << mantissa_bits, 1 << (width - 1)
    least = 1 << mantissa_bits
    patterns = [
        0, 1, 2, least - 1, least, least + 1, 2 * least, infinity - 1, infinity, infinity + 1,
        infinity | 1 << (mantissa_bits - 1), infinity | (1 << mantissa_bits) - 1,
    ]  # fmt: skip
    numbers = [*SIGNIFICANDS, *WHOLE, *(2.0**power for power in POWERS), *(1.5 * 2.0**power for power in POWERS[:6])]
    patterns += [int(bits) for bits in numbers_of(kind, np.array(numbers))]
    both = [pattern | flip for pattern in dict.fromkeys(patterns) for flip in (0, sign)]
    return np.array(both, np.uint64).astype(DTYPES.get(kind, np.uint32))


def _paired(kind: str) -> Bits:
    """Every edge in the low half beside another one in the high half."""
    single = FLOATS[kind]()
    return _pair(single, np.roll(single, 7)[::-1])


FLOATS: dict[str, Callable[[], Bits]] = {
    "f32": lambda: _float_edges("f32", 8, 23),
    "f64": lambda: _float_edges("f64", 11, 52),
    "f16": lambda: _float_edges("f16", 5, 10),
    "bf16": lambda: _float_edges("bf16", 8, 7),
    "f16x2": lambda: _paired("f16"),
    "bf16x2": lambda: _paired("bf16"),
}


def _picked(choices: tuple[int, ...]) -> Callable[[str, int], Bits]:
    table = np.array(choices, np.uint32)
    return lambda seed, count: table[(raw(seed, count) % np.uint64(table.size)).astype(np.intp)]


def _unit(seed: str, count: int) -> Bits:
    """float32 between -40 and 40, more of them small."""
    bits = raw(seed, count)
    numbers = (
        (bits & np.uint64(0xFFFFFF)).astype(np.float64) / 2.0**24 * 2.0 ** ((bits >> np.uint64(40)) % np.uint64(6))
    )
    return numbers_of("f32", np.where(bits >> np.uint64(63), -1.25, 1.25) * numbers)


def _index(seed: str, count: int) -> Bits:
    """Indices of `count` elements, a few outside on either side."""
    spread = raw(seed, count) % np.uint64(count + 8)
    return (spread.astype(np.int64) - 4).astype(np.int32).view(np.uint32)


def _mma(kind: str) -> Callable[[str, int], Bits]:
    """A quarter each of moderate size, of wide exponents, of small integers, and with infinities and NaN among them."""

    def made(seed: str, count: int) -> Bits:
        plain = kind.removesuffix("x2")
        bits = raw(seed, count * 2)
        sign = np.where(bits >> np.uint64(63), -1.0, 1.0)
        unit = (1 + (bits & np.uint64(0xFFFFFF)).astype(np.float64) / 2.0**24) * sign
        wide = unit * 2.0 ** ((bits >> np.uint64(32)) % np.uint64(24)).astype(np.float64) * 2.0**-14
        whole = sign * ((bits >> np.uint64(50)) % np.uint64(9)).astype(np.float64)
        quarter = np.arange(2 * count) * 4 // (2 * count)
        made = numbers_of(plain, np.select([quarter == 0, quarter == 1, quarter == 2], [unit, wide, whole], unit))
        edges = FLOATS[plain]()
        special = (quarter == 3) & (bits >> np.uint64(56) & np.uint64(31) == 0)
        made[special] = edges[(bits[special] % np.uint64(edges.size)).astype(np.intp)]
        return _pair(made[::2], made[1::2]) if plain != kind else made[::2]

    return made


SPECIAL: dict[str, Callable[[str, int], Bits]] = {
    "count32": _picked(COUNTS),
    "field": _picked(FIELDS),
    "selector": lambda seed, count: np.where(
        raw(seed, count) >> np.uint64(63), _picked(SELECTORS)(seed, count), raw(seed, count, np.uint32)
    ).astype(np.uint32),
    "lane": lambda seed, count: raw(seed, count, np.uint32) & np.uint32(0x1F3F),
    "flag": lambda seed, count: np.where(
        np.arange(count) // 32 % 4 == 3, np.arange(count) // 128 % 2, raw(seed, count, np.uint32) & np.uint32(1)
    ).astype(np.uint32),
    "small": lambda seed, count: np.where(
        np.arange(count) // 32 % 4 == 3, np.arange(count) // 128, raw(seed, count, np.uint32) % np.uint32(9)
    ).astype(np.uint32),
    "unit32": _unit,
    "index": _index,
    **{f"mma_{kind}": _mma(kind) for kind in ("f32", "f16", "f16x2", "bf16x2")},
}
