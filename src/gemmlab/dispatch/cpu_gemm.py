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
from gemmlab.codegen.entry import C_ENTRY as C_SIGNATURE
from gemmlab.codegen.entry import NO_WORKSPACE, PYTHON_WORDS
from gemmlab.codegen.runtime import PYTHON_AT
from gemmlab.devices.cpu import CpuDevice, CpuLoaded, start_workers
from gemmlab.dispatch.request import rows_contiguous
from gemmlab.kernels.gemm_cpu.threaded import C_ENTRY, KERNEL, PYTHON_ENTRY

Float32Array = npt.NDArray[np.float32]

_METH_FASTCALL = 0x80
_C_TYPES: dict[str, Any] = {"i64": ctypes.c_int64, "float": ctypes.c_float, "ptr": ctypes.c_void_p}


@dataclass(frozen=True, slots=True)
class CpuProduct:
    """`C = alpha * A B + beta * C` on views, and the entry that reads NumPy arrays itself (where it can)."""

    python_entry: Callable[..., Float32Array | None] | None
    c_entry: Callable[..., int]
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
        """`c = alpha * a @ b + beta * c` for matrices with any strides. beta == 0 does not read c."""
        if c.size == 0:
            return
        if not rows_contiguous(c):
            if rows_contiguous(c.T):
                self.run(b.T, a.T, c.T, alpha, beta, threads)
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
        return self.c_entry(
            c.shape[0],
            c.shape[1],
            a.shape[1],
            alpha,
            a.ctypes.data,
            a.strides[0] // 4,
            a.strides[1] // 4,
            b.ctypes.data,
            b.strides[0] // 4,
            b.strides[1] // 4,
            beta,
            c.ctypes.data,
            c.strides[0] // 4,
            threads,
        )


def load_product() -> CpuProduct:
    """Compile (or fetch) and link the product. Raises `CompileError`, `MemoryError`."""
    device, kernel = CpuDevice(), KERNEL
    config = kernel.configure()
    loaded = device.load(device.build(kernel.program(config, device.target(config))))
    start_workers(loaded, 1)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *(_C_TYPES[str(type_)] for _name, type_ in C_SIGNATURE))
    return CpuProduct(_python_entry(loaded), prototype(loaded.addresses[C_ENTRY]), loaded)


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
    for index, label in enumerate(PYTHON_WORDS):
        runtime.word(PYTHON_AT + 8 * index).value = id(objects[label])
    definition = _MethodDef(b"gemmlab_gemm", loaded.addresses[PYTHON_ENTRY], _METH_FASTCALL, None)
    _method_definitions.append(definition)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.POINTER(_MethodDef), ctypes.c_void_p, ctypes.c_void_p]
    entry: Callable[..., Float32Array | None] = make(ctypes.byref(definition), None, None)
    return entry


def _structures_as_expected() -> bool:
    """Whether CPython's and NumPy's object layouts are those the entry was written for, read off live objects."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8:
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
