"""Python's objects and NumPy's arrays in compiled code: offsets in their structures, and calls of Python's and NumPy's
functions.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.codegen.runtime import DEFAULT_THREADS_AT, PYTHON_AT, SYMBOL, WORKERS_AT
from gemmlab.codegen.thread_division import VECTOR_SERIAL
from gemmlab.ir.function import Function
from gemmlab.ir.target import Target
from gemmlab.ir.types import F32, F64, I8, I32, I64, VOID, pointer
from gemmlab.ir.values import Value

PYTHON_WORDS = ("ndarray", "float32", "float", "int", "none", "true", "false", "new_array")
"""Names of Python objects, and of NumPy's function `PyArray_New` (`new_array`), whose addresses the runtime stores from
`PYTHON_AT` on, in this order.
"""

# Offsets in CPython's and NumPy's structures, the same since NumPy 1.7; checked when the entry is made.
_TYPE = 8
_FLOAT_VALUE = 16
DATA, NDIM, SHAPE, STRIDES, DESCR, _FLAGS = 16, 24, 32, 40, 56, 64
_WRITEABLE = 0x400
_NPY_FLOAT = 11
"""NumPy's number for the type float32."""

_KEEP_GIL_WORK = 1 << 15
"""Multiply-adds below which releasing the interpreter's lock would cost more than the product."""

METHOD = (("self", pointer(I8)), ("args", pointer(I64)), ("count", I64))
"""Arguments of a built-in function without keyword arguments."""
GiveUp = Callable[[Value], None]
Objects = dict[str, Value]


def python_words(fn: Function) -> Objects:
    """Emit loads of the addresses of the objects and of the function in `PYTHON_WORDS`, and return them by name."""
    base = fn.symbol(f"@{SYMBOL}", I8)
    return {label: fn.load(fn.cast(base + (PYTHON_AT + 8 * index), I64)) for index, label in enumerate(PYTHON_WORDS)}


def giving_up(fn: Function, python: Objects) -> GiveUp:
    """Return a function that emits code by which `fn` returns Python's None if a condition holds."""

    def give_up_when(condition: Value) -> None:
        with fn.when(condition):
            none = fn.cast(python["none"], I8)
            fn.call_external("Py_IncRef", VOID, (pointer(I8),), none)
            fn.ret(none)

    return give_up_when


def type_of(fn: Function, obj: Value) -> Value:
    """Emit the load of the address of an object's type, and return it."""
    return fn.load(fn.cast(obj + _TYPE, I64))


def axis_count(fn: Function, obj: Value) -> Value:
    """Emit the load of the number of axes of an array, and return it."""
    return fn.zero_extend(fn.load(fn.cast(obj + NDIM, I32)))


def new_array(fn: Function, python: Objects, count: Value, dims: Value) -> Value:
    """Emit the creation of a float32 array with `count` axes, whose extents are at `dims`; return its address.

    The address is 0 if there is no memory.
    """
    types = (pointer(I8), I32, pointer(I64), I32, pointer(I64), pointer(I8), I32, I32, pointer(I8))
    new, kind = (fn.cast(python[label], I8) for label in ("new_array", "ndarray"))
    nothing = fn.cast(fn.index(0), I8)
    made = fn.call_pointer(
        new, pointer(I8), types, kind, fn.convert(count, I32), dims, _NPY_FLOAT, fn.cast(nothing, I64), nothing, 0, 0,
        nothing,
    )  # fmt: skip
    with fn.when(fn.address(made).equals(0)):
        fn.call_external("PyErr_Clear", VOID, ())
    return made


def read_only(fn: Function, obj: Value) -> Value:
    """Emit the load of NumPy's flags of an array, and return whether they say that it is not writeable."""
    return (fn.zero_extend(fn.load(fn.cast(obj + _FLAGS, I32))) & _WRITEABLE).equals(0)


def without_lock(fn: Function, work: Value, call: Callable[[], object]) -> None:
    """Emit what `call` emits, with the interpreter's lock released meanwhile if `work` is at least `_KEEP_GIL_WORK`.

    `work` is in multiply-adds, or in elements of a sum. `call` is called twice, once for each case.
    """
    with fn.choose(work < _KEEP_GIL_WORK) as small:
        with small.yes():
            call()
        with small.no():
            state = fn.call_external("PyEval_SaveThread", pointer(I8), ())
            call()
            fn.call_external("PyEval_RestoreThread", VOID, (pointer(I8),), state)


def number(fn: Function, give_up_when: GiveUp, python: Objects, obj: Value) -> Value:
    """Emit code that reads a Python float, and return it, rounded to float32.

    The code gives up if `obj` is of any other type, a subclass of float included.
    """
    give_up_when(type_of(fn, obj).differs(python["float"]))
    return fn.convert(fn.load(fn.cast(obj + _FLOAT_VALUE, F64)), F32)


def thread_word(fn: Function, give_up_when: GiveUp, python: Objects, obj: Value, work: Value, target: Target) -> Value:
    """Emit code for the number of threads, and return it: that of `obj`, a positive int, or the default if it is None.

    The code gives up for any other object, and if more workers must be started first and `work` (multiply-adds) is
    large enough to use them.
    """
    # C's long has 32 bits on Windows.
    as_integer = "PyLong_AsLongLong" if target.windows else "PyLong_AsLong"
    base = fn.symbol(f"@{SYMBOL}", I8)
    threads = fn.var(I64, fn.load(fn.cast(base + DEFAULT_THREADS_AT, I64)))
    with fn.when(fn.address(obj).differs(python["none"])):
        give_up_when(type_of(fn, obj).differs(python["int"]))
        threads.set(fn.call_external(as_integer, I64, (pointer(I8),), obj))
        with fn.when(threads < 1):
            fn.call_external("PyErr_Clear", VOID, ())
        give_up_when(threads < 1)
    short = threads > fn.load(fn.cast(base + WORKERS_AT, I64)) + 1
    give_up_when(short & (work >= VECTOR_SERIAL))
    return threads.read()
