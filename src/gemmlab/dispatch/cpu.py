"""The compiled product of the `threaded` kernel, called on NumPy views: the library's way onto the CPU."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.codegen import runtime as shared
from gemmlab.codegen.entry import NO_WORKSPACE, PYTHON_WORDS
from gemmlab.codegen.entry import STACK_ENTRY as STACK_SIGNATURE
from gemmlab.codegen.runtime import PYTHON_AT
from gemmlab.devices.cpu import CpuDevice, CpuLoaded, start_workers
from gemmlab.dispatch.operands import rows_contiguous
from gemmlab.kernels.gemm_cpu.threaded import KERNEL, PYTHON_ENTRY, STACK_ENTRY

Float32Array = npt.NDArray[np.float32]

_METH_FASTCALL = 0x80
_ARRAY_ABI = (0x01000009, 0x02000000)
"""Versions of NumPy's binary interface, of 1.7 and of 2.0 on, that have `PyArray_New` at this place in their table."""
_NEW_ARRAY_AT = 93
_C_TYPES: dict[str, Any] = {"i64": ctypes.c_int64, "float": ctypes.c_float, "ptr": ctypes.c_void_p}


@dataclass(frozen=True, slots=True)
class CpuProduct:
    """`C = alpha * A B + beta * C` on views, and the entry that reads NumPy arrays itself (where it can)."""

    python_entry: Callable[..., Float32Array | None] | None
    stack_entry: Callable[..., int]
    loaded: CpuLoaded

    def run(
        self,
        a: Float32Array,
        b: Float32Array,
        c: Float32Array,
        alpha: float,
        beta: float,
        threads: int | None,
    ) -> None:
        """`c = alpha * a @ b + beta * c` for stacks of matrices, leading axes equal, with any strides.

        beta == 0 does not read c.
        """
        if c.size == 0:
            return
        if not _rows_contiguous(c):
            if _rows_contiguous(c.swapaxes(-1, -2)):
                self.run(b.swapaxes(-1, -2), a.swapaxes(-1, -2), c.swapaxes(-1, -2), alpha, beta, threads)
                return
            plain = np.array(c, order="C") if beta != 0.0 else np.empty(c.shape, np.float32)
            self.run(a, b, plain, alpha, beta, threads)
            np.copyto(c, plain)
            return
        left, right = _whole_strides(a), _whole_strides(b)
        count = shared.runtime().default_threads if threads is None else min(threads, shared.MOST_THREADS)
        start_workers(self.loaded, count)
        while self._call(left, right, c, alpha, beta, count) == NO_WORKSPACE:
            if not shared.runtime().add_slot():
                time.sleep(0.001)

    def _call(self, a: Float32Array, b: Float32Array, c: Float32Array, alpha: float, beta: float, threads: int) -> int:
        leading = c.shape[:-2]
        of_axes = zip(leading, *(x.strides[:-2] for x in (a, b, c)), strict=True)
        words = [word for extent, *steps in of_axes for word in (extent, *(step // 4 for step in steps))]
        axes = (ctypes.c_int64 * len(words))(*words)
        return self.stack_entry(
            *c.shape[-2:],
            a.shape[-1],
            alpha,
            a.ctypes.data,
            a.strides[-2] // 4,
            a.strides[-1] // 4,
            b.ctypes.data,
            b.strides[-2] // 4,
            b.strides[-1] // 4,
            beta,
            c.ctypes.data,
            c.strides[-2] // 4,
            threads,
            ctypes.addressof(axes),
            len(leading),
        )


def load_product() -> CpuProduct:
    """Compile (or fetch) and link the product. Raises `CompileError`, `MemoryError`."""
    device, kernel = CpuDevice(), KERNEL
    config = kernel.configure()
    loaded = device.load(device.build(kernel.program(config, device.target(config))))
    start_workers(loaded, 1)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *(_C_TYPES[str(type_)] for _name, type_ in STACK_SIGNATURE))
    return CpuProduct(_python_entry(loaded), prototype(loaded.addresses[STACK_ENTRY]), loaded)


def _rows_contiguous(stack: Float32Array) -> bool:
    """Whether the rows of every matrix are."""
    return all(step % 4 == 0 for step in stack.strides[:-2]) and rows_contiguous(stack[(0,) * (stack.ndim - 2)])


def _whole_strides(view: Float32Array) -> Float32Array:
    """The view itself, or a copy where strides are not whole elements (fields of packed records)."""
    return view if all(stride % 4 == 0 for stride in view.strides) else np.array(view, order="C")


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_method_definitions: list[_MethodDef] = []
"""A built-in function refers to its definition as long as it lives."""


def _python_entry(loaded: CpuLoaded) -> Callable[..., Float32Array | None] | None:
    """The compiled entry as a built-in function; None on an interpreter whose structures it does not know."""
    if not _structures_as_expected():
        return None
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
    definition = _MethodDef(b"gemmlab_gemm", loaded.addresses[PYTHON_ENTRY], _METH_FASTCALL, None)
    _method_definitions.append(definition)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.POINTER(_MethodDef), ctypes.c_void_p, ctypes.c_void_p]
    entry: Callable[..., Float32Array | None] = make(ctypes.byref(definition), None, None)
    return entry


def _new_array() -> int:
    """The address of NumPy's `PyArray_New`, from the table that every extension module reads; 0 where there is none."""
    core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get("numpy.core._multiarray_umath")
    capsule = getattr(core, "_ARRAY_API", None)
    if capsule is None:
        return 0
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[0] or 0)()
    return (table[_NEW_ARRAY_AT] or 0) if version in _ARRAY_ABI else 0


def _structures_as_expected() -> bool:
    """Whether CPython's and NumPy's object layouts are those the entry was written for, read off live objects."""
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
