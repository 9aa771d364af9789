"""The dtypes of arrays that may be passed for a kernel's pointer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from gemmlab.kernels.cuda_file.c_types import C_TYPES

_NUMBERS: Mapping[str, type[np.generic]] = {
    **C_TYPES,
    "char": np.int8, "signed char": np.int8, "int8_t": np.int8, "unsigned char": np.uint8, "uchar": np.uint8,
    "uint8_t": np.uint8, "int16_t": np.int16, "unsigned short": np.uint16, "ushort": np.uint16, "uint16_t": np.uint16,
    "short int": np.int16, "longlong": np.int64, "ulong": np.uint64, "ulonglong": np.uint64,
}  # fmt: skip
_HALVES = frozenset(("half", "__half", "__nv_bfloat16", "nv_bfloat16"))
_VECTOR = re.compile(r"(char|uchar|short|ushort|int|uint|long|ulong|longlong|ulonglong|float|double|half)[1-4]")
_PAIRS: Mapping[str, str] = {"__half2": "half", "__nv_bfloat162": "half", "nv_bfloat162": "half"}


def fits(pointer: str, dtype: np.dtype[Any]) -> bool:
    """Return whether elements of `dtype` can be passed for a kernel's parameter `pointer` (`"float*"`, `"int4*"`).

    A real type takes floats of the same size; half and bfloat16 also take `uint16`. A type of integers or `bool` takes
    any dtype of the same size that is no float; one of a single byte also takes byte strings of any length. For a
    vector type its base type counts, and a complex number counts as two floats. Structures, `void*` and unknown types
    take any dtype, and a structured dtype fits any pointer.
    """
    base = pointer.removesuffix("*")
    vector = _VECTOR.fullmatch(base)
    base = vector[1] if vector else _PAIRS.get(base, base)
    if dtype.kind == "V" or (base not in _HALVES and base not in _NUMBERS):
        return True
    kind, size = ("f", dtype.itemsize // 2) if dtype.kind == "c" else (dtype.kind, dtype.itemsize)
    if base in _HALVES:
        return size == 2 and kind in "fu"
    takes = np.dtype(_NUMBERS[base])
    if kind == "S" and takes.itemsize == 1:
        return True
    return size == takes.itemsize and (kind == "f") == (takes.kind == "f")
