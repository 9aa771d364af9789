"""Matrix products of the tensor-core kernels from their fragments, written down from PTX's tables and not from SASS.

Thread t of a warp holds words [t * count, (t + 1) * count) of each operand. `reference` is exact to float64's
rounding; `scales` is the sum of the absolute values that enter each result, which error bounds are relative to.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
from cases import Case
from edges import Bits

Numbers = npt.NDArray[np.float64]
_SHAPE = re.compile(r"mma_m16n8k(\d+)_(tf32|bf16|f16)")


def scales(case: Case) -> Numbers | None:
    """|A| |B| + |C| for each value of the output; `None` for kernels that multiply no matrices."""
    if case.file != "tensor":
        return None
    with np.errstate(invalid="ignore"):
        return _product(case, absolute=True)


def reference(case: Case) -> Numbers:
    """A B + C for each value of the output."""
    with np.errstate(invalid="ignore", over="ignore"):
        return _product(case, absolute=False)


def _product(case: Case, *, absolute: bool) -> Numbers:
    operands = list(zip(case.arguments, case.inputs(), strict=False))[:3]
    a, b, c = (
        _numbers(argument.kind, bits, place < 2 and "tf32" in case.kernel)
        for place, (argument, bits) in enumerate(operands)
    )
    if absolute:
        a, b, c = np.abs(a), np.abs(b), np.abs(c)
    match = _SHAPE.match(case.kernel)
    if match is None:
        return _whole(case.kernel, a, b, c)
    depth, pairs = int(match[1]), match[2] != "tf32"
    warps = case.n // 32
    lane = np.arange(32)
    group, place = lane >> 2, lane & 3
    out = c.reshape(warps, 32, 4).copy()
    a_full, b_full = np.zeros((warps, 16, depth)), np.zeros((warps, depth, 8))
    half = depth // 2 if depth > 8 or (not pairs and depth > 4) else depth
    a_parts, b_parts = a.reshape(warps, 32, -1), b.reshape(warps, 32, -1)
    width = 2 if pairs else 1
    for slot in range(a_parts.shape[2]):
        register, inner = divmod(slot, width)
        rows, cols = group + 8 * (register & 1), place * width + inner + half * (register >> 1)
        a_full[:, rows, cols] = a_parts[:, lane, slot]
    for slot in range(b_parts.shape[2]):
        register, inner = divmod(slot, width)
        b_full[:, place * width + inner + half * register, group] = b_parts[:, lane, slot]
    product = a_full @ b_full
    for slot in range(4):
        out[:, lane, slot] += product[:, group + 8 * (slot >> 1), place * 2 + (slot & 1)]
    return out.reshape(-1)


def _whole(kernel: str, a: Numbers, b: Numbers, c: Numbers) -> Numbers:
    """WMMA on plain matrices: A by rows; B by rows (tf32) or columns (f16)."""
    product = a.reshape(16, 8) @ b.reshape(8, 16) if kernel == "wmma_tf32" else a.reshape(16, 16) @ b.reshape(16, 16).T
    return (product + c.reshape(16, 16)).reshape(-1)


def _numbers(kind: str, bits: Bits, cut: bool) -> Numbers:
    """What the bits stand for; tensor cores pass over the low 13 bits of TF32 operands."""
    plain = kind.removeprefix("mma_")
    if plain == "f32":
        return (bits & np.uint32(0xFFFFE000) if cut else bits).view(np.float32).astype(np.float64)
    if plain.startswith("bf16"):
        return (bits.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return bits.view(np.float16).astype(np.float64)
