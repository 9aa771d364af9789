"""Compiled entries as built-in functions of Python.

An entry is machine code that reads Python's and NumPy's objects in memory. It compares their types with known objects.
It is used only if the layouts of objects are those that it assumes.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gemmlab.codegen import runtime as shared
from gemmlab.codegen.python_objects import PYTHON_WORDS
from gemmlab.codegen.runtime import PYTHON_AT

_METH_FASTCALL = 0x80
_ARRAY_ABI = (0x01000009, 0x02000000)
"""Versions of NumPy's binary interface (of NumPy 1.7 and later, of 2.0 and later) whose tables have `PyArray_New` at
index `_NEW_ARRAY_AT`.
"""
_NEW_ARRAY_AT = 93


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_method_definitions: list[_MethodDef] = []
"""Definitions of the built-in functions, which must live as long as the functions do."""


def built_in(name: str, address: int) -> Callable[..., Any] | None:
    """Return the entry at an address as a Python function that takes positional arguments only.

    `None` on an interpreter whose objects have other layouts than the entry assumes.
    """
    if not _structures_as_expected():
        return None
    _note_objects()
    definition = _MethodDef(name.encode(), address, _METH_FASTCALL, None)
    _method_definitions.append(definition)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.POINTER(_MethodDef), ctypes.c_void_p, ctypes.c_void_p]
    entry: Callable[..., Any] = make(ctypes.byref(definition), None, None)
    return entry


def _note_objects() -> None:
    """Store the addresses of the objects that entries compare with, and of `PyArray_New`, where entries read them."""
    runtime = shared.runtime()
    objects: dict[str, Any] = {
        "ndarray": np.ndarray,
        "float32": np.dtype(np.float32),
        "float": float,
        "int": int,
        "none": None,
        "true": True,
        "false": False,
    }
    words = {label: id(item) for label, item in objects.items()} | {"new_array": _new_array()}
    for index, label in enumerate(PYTHON_WORDS):
        runtime.word(PYTHON_AT + 8 * index).value = words[label]


def _new_array() -> int:
    """Return the address of NumPy's `PyArray_New`, from the table that every extension module reads; 0 without one."""
    core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get("numpy.core._multiarray_umath")
    capsule = getattr(core, "_ARRAY_API", None)
    if capsule is None:
        return 0
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[0] or 0)()
    return (table[_NEW_ARRAY_AT] or 0) if version in _ARRAY_ABI else 0


@cache
def _structures_as_expected() -> bool:
    """Return whether the object layouts of CPython and NumPy are those that entries assume, by live objects."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or not _new_array():
        return False
    array = np.zeros((3, 5), np.float32)[:, ::2]
    words = ctypes.cast(id(array), ctypes.POINTER(ctypes.c_int64 * 9)).contents
    shape = ctypes.cast(words[4], ctypes.POINTER(ctypes.c_int64 * 2)).contents
    strides = ctypes.cast(words[5], ctypes.POINTER(ctypes.c_int64 * 2)).contents
    value = ctypes.cast(id(2.5), ctypes.POINTER(ctypes.c_double * 3)).contents[2]
    return (
        words[1] == id(np.ndarray)
        and words[2] == array.ctypes.data
        and words[3] & 0xFFFFFFFF == 2
        and tuple(shape) == array.shape
        and tuple(strides) == array.strides
        and words[7] == id(np.dtype(np.float32))
        and value == 2.5
    )
