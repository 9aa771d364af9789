"""Reductions of boxes of tensors: the types that an instruction has, and elements that are combined."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.core.tensor_map import TiledMap
from gemmlab.emulator.async_calls import REDUCTIONS
from gemmlab.emulator.asynchronous.combining import combined, number_of

Bytes = npt.NDArray[np.uint8]
_KINDS = {
    "UINT32": "U32", "INT32": "S32", "UINT64": "U64", "INT64": "S64", "FLOAT16": "F16", "BFLOAT16": "BF16",
    "FLOAT32": "F32", "FLOAT32_FTZ": "F32", "TFLOAT32": "F32", "TFLOAT32_FTZ": "F32",
    "FLOAT64": "F64",
}  # fmt: skip
_BITWISE = ("UINT32", "INT32", "UINT64")
_HALVES = ("FLOAT16", "BFLOAT16")
_ORDERED = (*_BITWISE, "INT64", *_HALVES)
_TYPES = {
    "ADD": (*_BITWISE, *_HALVES, "FLOAT32", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ", "FLOAT64"),
    "MIN": _ORDERED, "MAX": _ORDERED, "INC": ("UINT32",), "DEC": ("UINT32",),
    "AND": _BITWISE, "OR": _BITWISE, "XOR": _BITWISE,
}  # fmt: skip
"""Operation -> the types for which an H200 executes it. With any other type the instruction is illegal."""


def reduction_of(tensor: TiledMap, reduction: int) -> int:
    """Return the number of a reduction (`combining.number_of`) with the type of the tensor's elements.

    `reduction` is the number of the same operation with any type, or 0 for a plain store; the result is then 0. Raises
    `UsageError` if an H200 does not execute the operation for the tensor's type.
    """
    if not reduction:
        return 0
    name, kind = REDUCTIONS[reduction & 15], tensor.type.name
    if kind not in _TYPES[name]:
        cure = f"the operation has {', '.join(_TYPES[name])}"
        if kind == "INT64":
            cure = "a map of UINT64 leaves the same bits"
        raise UsageError(f"a tensor reduction `{name.lower()}` of {kind} is an illegal instruction: {cure}")
    return number_of(name, _KINDS[kind])


def reduced(tensor: TiledMap, reduction: int, old: Bytes, new: Bytes) -> Bytes:
    """Return the result of a reduction of `old` and `new`, rows of bytes with elements of the tensor's type.

    If the type's name ends in `_FTZ`, denormal operands and results become signed zeros.

    TFLOAT32 and TFLOAT32_FTZ are added up as float32: a reduction rounds nothing to TF32.
    """
    if not tensor.type.name.endswith("_FTZ"):
        return combined(reduction, old.reshape(-1), new.reshape(-1)).reshape(new.shape)
    return _flushed(combined(reduction, _flushed(old).reshape(-1), _flushed(new).reshape(-1))).reshape(new.shape)


def _flushed(data: Bytes) -> Bytes:
    words = np.ascontiguousarray(data).view(np.uint32)
    return np.where(words & 0x7F800000, words, words & 0x80000000).astype(np.uint32).view(np.uint8)
