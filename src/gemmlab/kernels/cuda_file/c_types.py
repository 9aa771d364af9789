"""C types of a kernel's arguments: a table of them, the type that a pointer points to, and conversion of numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from gemmlab.core.elements import Element, element
from gemmlab.core.errors import UsageError
from gemmlab.kernels.cuda_file.signature import Argument

C_TYPES: Mapping[str, type[np.generic]] = {
    "int": np.int32, "signed": np.int32, "signed int": np.int32, "int32_t": np.int32,
    "unsigned": np.uint32, "unsigned int": np.uint32, "uint": np.uint32, "uint32_t": np.uint32,
    "long": np.int64, "long int": np.int64, "long long": np.int64, "long long int": np.int64, "int64_t": np.int64,
    "ptrdiff_t": np.int64, "unsigned long": np.uint64, "unsigned long long": np.uint64, "uint64_t": np.uint64,
    "size_t": np.uint64, "short": np.int16, "bool": np.bool_, "float": np.float32,
    "double": np.float64, "half": np.float16, "__half": np.float16, "nv_half": np.float16,
    "unsigned long long int": np.uint64, "unsigned long int": np.uint64, "cudaTextureObject_t": np.uint64,
}  # fmt: skip
"""NumPy's type for each C type that a kernel may take by value."""
TEXTURE_TYPE = "cudaTextureObject_t"
MAP_TYPES: Mapping[str, int] = {"CUtensorMap": 1, "FourMaps": 4}
"""Number of tensor maps over an operand that an argument of each of these types has (`maps.py`)."""
_NUMBERS: Mapping[str, str] = {
    "float": "float32", "Stored": "float32", "void": "float32", "double": "float64", "half": "float16",
    "__half": "float16", "nv_half": "float16", "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16", "char": "int8",
    "signed char": "int8", "int8_t": "int8", "uchar": "uint8", "unsigned char": "uint8", "uint8_t": "uint8",
    "short": "int16", "short int": "int16", "int16_t": "int16",
    "unsigned short": "uint16", "ushort": "uint16", "uint16_t": "uint16", "int": "int32", "signed": "int32",
    "int32_t": "int32", **dict.fromkeys(("unsigned", "unsigned int", "uint", "uint32_t"), "uint32"),
    **dict.fromkeys(("long", "long int", "long long", "long long int", "int64_t", "ptrdiff_t"), "int64"),
    **{f"__nv_fp8{several}_{form}": f"float8_{form}{finite}" for several in ("", "x2", "x4")
       for form, finite in (("e4m3", "fn"), ("e5m2", ""))},
    "__nv_fp8_storage_t": "uint8", "__nv_fp8x2_storage_t": "uint8", "__nv_fp8x4_storage_t": "uint8",
}  # fmt: skip
"""The type of elements (`core.elements`) by the C type that a pointer points to. `Stored` of `cuda_common/stored.cuh`
is float unless a rung is compiled for halves; `void` counts as float.
"""
_VECTOR = re.compile(r"(__nv_bfloat16|nv_bfloat16|__half|nv_half|half|float|double|char|uchar|short|int)([234])")
"""Vector types of several elements, such as `float4`, `__half2` or `__nv_bfloat162`."""
REALS = ("float", "double", "half", "__half", "nv_half")
"""Types of real numbers that kernels take by value."""
TICKET_POINTERS = ("unsigned*", "unsigned int*", "uint*", "uint32_t*")
"""Types that tickets may have; operands may have them, too."""


def element_of(argument: Argument) -> Element | None:
    """Return the type of the numbers that a pointer points to; `None` for other pointers, and arguments by value."""
    base = argument.type.removesuffix("*")
    vector = _VECTOR.fullmatch(base)
    name = _NUMBERS.get(vector[1] if vector else base)
    return element(name) if name is not None and argument.is_pointer else None


def is_whole(argument: Argument) -> bool:
    """Return whether an argument is passed by value and is a whole number. `bool` is none, a texture object is one."""
    return issubclass(C_TYPES.get(argument.type, np.void), np.integer)


def c_value(argument: Argument, value: float) -> np.generic:
    """Return a number as the argument's C type, which must be in `C_TYPES`; `UsageError` if it does not fit an integer
    type.
    """
    kind = C_TYPES[argument.type]
    if issubclass(kind, np.integer):
        limits = np.iinfo(kind)
        if not limits.min <= value <= limits.max or value % 1:
            raise UsageError(f"{value} does not fit in {str(argument)!r}")
    return kind(value)


def is_plain(argument: Argument) -> bool:
    """Return whether an argument is a pointer or a number, and no structure or tensor map."""
    return argument.is_pointer or argument.type in C_TYPES
