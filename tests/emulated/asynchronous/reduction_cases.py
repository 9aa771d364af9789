"""Asynchronous reductions for the conformance of the emulator: launches on values that follow from a case's name."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from one_cubin import one_cubin

from gemmlab import TensorMap, launch

KERNELS = Path(__file__).parent / "reduction_bits.cu"
BLOCKS, BYTES, PIECE = 4, 2048, 64
"""Blocks, bytes of a block, and bytes of a piece that has a checksum."""
FLOATS = {"f16": (16, 10), "bf16": (16, 7), "f32": (32, 23), "f64": (64, 52)}
"""Bits and bits of the mantissa."""
INTEGERS = ("u32", "s32", "u64", "s64")
MAPS = {
    "u32": "uint32", "s32": "int32", "u64": "uint64", "s64": "int64", "f16": "float16", "bf16": "bfloat16",
    "f32": "float32", "f32_ftz": "float32_ftz", "f64": "float64", "tf32": "tfloat32", "tf32_ftz": "tfloat32_ftz",
}  # fmt: skip
BULK = (
    "add_u32", "add_s32", "add_u64", "add_f32", "add_f64", "add_f16", "add_bf16", "min_u32", "min_s32", "min_u64",
    "min_s64", "min_f16", "min_bf16", "max_u32", "max_s32", "max_u64", "max_s64", "max_f16", "max_bf16", "inc_u32",
    "dec_u32", "and_b32", "or_b32", "xor_b32", "and_b64", "or_b64", "xor_b64",
)  # fmt: skip
FAR = (
    "add_u32", "add_s32", "add_u64", "min_u32", "min_s32", "max_u32", "max_s32", "inc_u32", "dec_u32", "and_b32",
    "or_b32", "xor_b32",
)  # fmt: skip
Bits = npt.NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class Reduction:
    """One kernel, and the type of its elements."""

    way: str
    """`"bulk"`, `"far"` and `"red"` (into another block's shared memory), or `"tensor"`."""
    operation: str
    kind: str

    @property
    def name(self) -> str:
        return f"{self.way}_{self.operation}_{self.kind}"

    def bits(self, device: str) -> Bits:
        """Return the memory that a device leaves: all bits of floating-point numbers, else checksums of pieces."""
        found, kind = self.left(device), self.kind.split("_")[0]
        if kind in (*FLOATS, "tf32"):
            return found.view(f"u{FLOATS.get(kind, (32,))[0] // 8}")
        return np.array([zlib.crc32(piece.tobytes()) for piece in found.reshape(-1, PIECE)], np.uint32)

    def left(self, device: str, lacks: int = 0) -> npt.NDArray[np.uint8]:
        """Return the bytes that a device leaves. A tensor ends `lacks` elements before its rows do."""
        old, new = operands(self)
        given = new.view(np.uint8)
        kernel = f"{self.way}_{self.operation}"
        if self.way == "tensor":
            dtype = np.dtype({16: np.uint16, 32: np.uint32, 64: np.uint64}[8 * old.itemsize])
            there = old.view(dtype).reshape(8 * BLOCKS, -1)
            shape = there.shape[0], there.shape[1] - lacks
            args: list[Any] = [TensorMap(there, (8, there.shape[1]), dtype=MAPS[self.kind], shape=shape), given]
        else:
            args, kernel = [given, old.view(np.uint8)], f"{kernel}_{self.kind}"
        code = one_cubin(str(KERNELS), "bulk_add_u32", device)
        done: Any = launch(code, kernel, BLOCKS, 64, args, device=device, timeout_s=10)
        if done.hazards:
            raise RuntimeError(f"{self.name}: {done.hazards[0].explain()}")
        found = np.ascontiguousarray(done.outputs[0 if self.way == "tensor" else 1])
        return found.reshape(-1).view(np.uint8)


def reductions() -> Iterator[Reduction]:
    """Every operation and type that PTX names."""
    for way, names in (("bulk", BULK), ("far", FAR), ("red", FAR)):
        for name in names:
            operation, kind = name.split("_")
            yield Reduction(way, operation, kind)
    for kind in INTEGERS:
        for operation in ("add", "min", "max", "and", "or", "xor"):
            yield Reduction("tensor", operation, kind)
    for operation in ("inc", "dec"):
        yield Reduction("tensor", operation, "u32")
    for kind in ("f16", "bf16"):
        for operation in ("add", "min", "max"):
            yield Reduction("tensor", operation, kind)
    for kind in ("f32", "f32_ftz", "f64"):
        yield Reduction("tensor", "add", kind)


def odd_reductions() -> Iterator[Reduction]:
    """Pairs of operation and type that a tensor map allows and PTX does not name: a GPU may stop at them."""
    odd = (("min", "f32"), ("max", "f64"), ("add", "tf32"), ("add", "tf32_ftz"), ("inc", "s32"), ("inc", "u64"))
    for operation, kind in odd:
        yield Reduction("tensor", operation, kind)


def operands(case: Reduction) -> tuple[Bits, Bits]:
    """The elements in memory and those that come: every pair of edges, values near each other, and random bits."""
    kind = case.kind.replace("_ftz", "").replace("tf32", "f32")
    width = FLOATS[kind][0] if kind in FLOATS else int(kind[1:])
    dtype = np.dtype(f"u{width // 8}")
    edges = _edges(kind, width).astype(dtype)
    count = BLOCKS * BYTES // dtype.itemsize
    rng = np.random.Generator(np.random.PCG64(zlib.crc32(f"{case.operation} {case.kind}".encode())))
    old, new = (np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy() for _ in range(2))
    # Half of the random pairs differ in the sign and the bits below the upper ones: sums cancel, or are rounded.
    mantissa = FLOATS[kind][1] if kind in FLOATS else width // 2
    mask = dtype.type((1 << (mantissa + 3)) - 1 | 1 << (width - 1))
    new[::2] = old[::2] ^ (new[::2] & mask)
    first, second = (part.reshape(-1) for part in np.meshgrid(edges, edges, indexing="ij"))
    size = min(first.size, count)
    old[:size], new[:size] = first[:size], second[:size]
    return old, new


def _edges(kind: str, width: int) -> Bits:
    if kind not in FLOATS:
        top = 1 << (width - 1)
        found = [0, 1, 2, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 1000]
        return np.array(found, np.uint64)
    fraction = FLOATS[kind][1]
    one, infinity = 1 << fraction, (1 << (width - 1)) - (1 << fraction)
    bias = ((1 << (width - 1 - fraction)) // 2 - 1) << fraction
    numbers = [0, 1, one // 2 + 1, one - 1, one, one + 1, bias, bias + 1, infinity - 1, infinity]
    numbers += [infinity + 1, infinity + one // 2, infinity + one // 2 + 5, infinity + one - 1]
    return np.array([number | sign << (width - 1) for number in numbers for sign in (0, 1)], np.uint64)
