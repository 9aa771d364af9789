"""Compile a function written in the kernel language and call it: what the tests of the code generator share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from gemmlab.ir.compile import compile_object, load_object
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.target import host_target
from gemmlab.ir.types import F32, F64, I64, VOID, Type, pointer

WORDS, FLOATS = pointer(I64), pointer(F32)
_C_TYPES: dict[str, Any] = {
    "void": None, "i64": ctypes.c_int64, "float": ctypes.c_float, "double": ctypes.c_double, "ptr": ctypes.c_void_p,
}  # fmt: skip
Emit = Callable[..., object]
"""`emit(fn, *arguments)` writes the function's body and ends it with `fn.finish`."""


def module_of(emit: Emit, params: Sequence[Type], returns: Type = VOID, lanes: int | None = None) -> Module:
    module = Module(host_target(lanes))
    named = [(f"p{index}", type_) for index, type_ in enumerate(params)]
    with module.function("under_test", named, returns, exported=True) as fn:
        emit(fn, *fn.args)
    return module


def jit(emit: Emit, params: Sequence[Type], returns: Type = VOID, lanes: int | None = None) -> Callable[..., Any]:
    """The compiled function. Pointers are passed as addresses."""
    module = module_of(emit, params, returns, lanes)
    loaded = load_object(compile_object(module.text(), module.target), ["under_test"])
    prototype = ctypes.CFUNCTYPE(_C_TYPES[str(returns)], *(_C_TYPES[str(type_)] for type_ in params))
    return prototype(loaded.addresses["under_test"])


def integers(emit: Callable[[Function, Any, Any], Any]) -> Callable[[int, int], int]:
    """A function of two integers whose body is an expression."""
    return jit(lambda fn, x, y: fn.finish(emit(fn, x, y)), (I64, I64), I64)


def doubles(emit: Callable[[Function, Any, Any], Any]) -> Callable[[float, float], float]:
    """A function of two doubles whose body is an expression."""
    return jit(lambda fn, x, y: fn.finish(emit(fn, x, y)), (F64, F64), F64)
