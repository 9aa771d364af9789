"""The doors into the compiled product: one for C callers, one for Python arrays.

`emit_c_entry` is what kernels export and ctypes calls. `emit_python_entry` is a METH_FASTCALL function that reads
NumPy's array structure itself: for three plain float32 matrices a whole call costs some tenths of a
microsecond. It does the common case only; for anything else it returns None, and the general front end, written in
Python, either prepares the operands or says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmlab.codegen.macrokernel import JOB
from gemmlab.codegen.product import VECTOR_SERIAL
from gemmlab.codegen.runtime import DEFAULT_THREADS_AT, PYTHON_AT, SLOTS, SLOTS_AT, SYMBOL, WORKERS_AT
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, F64, I8, I32, I64, VOID, pointer
from gemmlab.ir.values import Operand, Value, Var

DONE, NO_WORKSPACE = 0, 1

C_ENTRY = (*(argument for argument in JOB if argument[0] != "workspace"), ("threads", I64))

PYTHON_WORDS = ("ndarray", "float32", "float", "int", "none", "true", "false")
"""Objects whose addresses stand in the runtime's memory from `PYTHON_AT` on."""

# Offsets in CPython's and NumPy's structures, the same since NumPy 1.7; checked when the entry is made.
_TYPE = 8
_FLOAT_VALUE = 16
_DATA, _NDIM, _SHAPE, _STRIDES, _DESCR, _FLAGS = 16, 24, 32, 40, 56, 64
_WRITEABLE = 0x400

_KEEP_GIL_WORK = 1 << 15
"""Multiply-adds below which giving up the interpreter's lock would cost more than the product."""


def emit_c_entry(module: Module, product: Function, name: str) -> Function:
    """Emit the exported `name`: the product with a workspace from the runtime. 0 done, 1 no workspace free."""
    module.imported(SYMBOL)
    _emit_workspace(module)
    with module.function(name, C_ENTRY, I64, exported=True) as fn:
        *problem, threads = fn.args
        base = fn.symbol(f"@{SYMBOL}", I8)
        slot = fn.call(module["take_workspace"])
        with fn.when(slot < 0):
            fn.ret(NO_WORKSPACE)
        fn.call(product, *problem, _workspace_at(fn, slot), base, threads)
        fn.atomic_store(_slot(fn, slot), 0)
        fn.finish(DONE)
    return fn


def _slot(fn: Function, index: Operand) -> Value:
    base = fn.symbol(f"@{SYMBOL}", I8)
    return fn.cast(base + (fn.index(index) * 16 + SLOTS_AT), I64)


def _workspace_at(fn: Function, slot: Value) -> Value:
    return fn.cast(fn.load(_slot(fn, slot) + 1), F32)


def _emit_workspace(module: Module) -> None:
    with module.function("take_workspace", [], I64) as fn:
        with fn.range(SLOTS) as index:
            flag = _slot(fn, index)
            with fn.when(fn.atomic_load(flag).equals(0)), fn.when(fn.compare_exchange(flag, 0, 1)):
                fn.ret(index)
        fn.finish(-1)


@dataclass(frozen=True, slots=True)
class _Matrix:
    """An array's facts as loaded from its structure; strides in elements."""

    data: Value
    rows: Var
    cols: Var
    row_step: Var
    col_step: Var

    def swap_if(self, fn: Function, condition: Value) -> None:
        """Transpose."""
        with fn.when(condition):
            rows, cols = self.rows.read(), self.cols.read()
            self.rows.set(cols)
            self.cols.set(rows)
            row_step, col_step = self.row_step.read(), self.col_step.read()
            self.row_step.set(col_step)
            self.col_step.set(row_step)

    def extent(self, fn: Function) -> tuple[Value, Value]:
        """First and last byte address that its elements touch (any sign of strides)."""
        base = fn.address(self.data)
        down, over = (self.rows - 1) * self.row_step * 4, (self.cols - 1) * self.col_step * 4
        low = base + fn.minimum(down, 0) + fn.minimum(over, 0)
        high = base + fn.maximum(down, 0) + fn.maximum(over, 0) + 3
        return low, high


def emit_python_entry(module: Module, product: Function, name: str) -> Function:
    """Emit `name(a, b, out, c, alpha, beta, trans_a, trans_b, threads)`: out, or None when Python must help.

    a, b, out: 2-D float32 `numpy.ndarray`s; out C-contiguous along rows, writeable, apart from a and b;
    c: out itself, or None with beta == 0.
    """
    words = pointer(I64)
    params = [("self", pointer(I8)), ("args", words), ("count", I64)]
    with module.function(name, params, pointer(I8), exported=True) as fn:
        _self, args, count = fn.args
        base = fn.symbol(f"@{SYMBOL}", I8)
        python = {
            label: fn.load(fn.cast(base + (PYTHON_AT + 8 * index), I64)) for index, label in enumerate(PYTHON_WORDS)
        }

        def give_up_when(condition: Value) -> None:
            with fn.when(condition):
                none = fn.cast(python["none"], I8)
                fn.call_external("Py_IncRef", VOID, (pointer(I8),), none)
                fn.ret(none)

        give_up_when(count.differs(9))
        objects = [fn.cast(args[index], I8) for index in range(9)]
        a, b, out = (_matrix(fn, give_up_when, python, obj) for obj in objects[:3])
        addend = fn.address(objects[3])
        alpha, beta = (_number(fn, give_up_when, python, obj) for obj in objects[4:6])
        fresh = addend.equals(python["none"]) & beta.equals(0.0)
        give_up_when((fresh | addend.equals(fn.address(objects[2]))).equals(0))
        for matrix, flag in ((a, objects[6]), (b, objects[7])):
            where = fn.address(flag)
            give_up_when(where.differs(python["true"]) & where.differs(python["false"]))
            matrix.swap_if(fn, where.equals(python["true"]))
        m, k, n = a.rows.read(), a.cols.read(), b.cols.read()
        give_up_when(k.differs(b.rows) | m.differs(out.rows) | n.differs(out.cols))
        give_up_when((m < 1) | (n < 1) | (k < 1))
        flags = fn.load(fn.cast(objects[2] + _FLAGS, I32))
        give_up_when((fn.zero_extend(flags) & _WRITEABLE).equals(0))
        give_up_when(out.col_step.differs(1) | ((out.row_step < n) & m.differs(1)))
        first, last = out.extent(fn)
        for matrix in (a, b):
            low, high = matrix.extent(fn)
            give_up_when((low <= last) & (first <= high))
        # C's long has 32 bits on Windows.
        as_integer = "PyLong_AsLongLong" if module.target.windows else "PyLong_AsLong"
        threads = _threads(fn, give_up_when, python, objects[8], m * n * k, as_integer)
        slot = fn.call(module["take_workspace"])
        give_up_when(slot < 0)
        arguments = (m, n, k, alpha, a.data, a.row_step, a.col_step, b.data, b.row_step, b.col_step, beta)
        call = (*arguments, out.data, out.row_step, _workspace_at(fn, slot), base, threads)
        with fn.choose(m * n * k < _KEEP_GIL_WORK) as small:
            with small.yes():
                fn.call(product, *call)
            with small.no():
                state = fn.call_external("PyEval_SaveThread", pointer(I8), ())
                fn.call(product, *call)
                fn.call_external("PyEval_RestoreThread", VOID, (pointer(I8),), state)
        fn.atomic_store(_slot(fn, slot), 0)
        fn.call_external("Py_IncRef", VOID, (pointer(I8),), objects[2])
        fn.finish(objects[2])
    return fn


_GiveUp = Callable[[Value], None]
_Objects = dict[str, Value]


def _type_of(fn: Function, obj: Value) -> Value:
    return fn.load(fn.cast(obj + _TYPE, I64))


def _matrix(fn: Function, give_up_when: _GiveUp, python: _Objects, obj: Value) -> _Matrix:
    give_up_when(_type_of(fn, obj).differs(python["ndarray"]))
    give_up_when(fn.load(fn.cast(obj + _DESCR, I64)).differs(python["float32"]))
    give_up_when(fn.zero_extend(fn.load(fn.cast(obj + _NDIM, I32))).differs(2))
    shape = fn.cast(fn.load(fn.cast(obj + _SHAPE, I64)), I64)
    strides = fn.cast(fn.load(fn.cast(obj + _STRIDES, I64)), I64)
    row_bytes, col_bytes = strides[0], strides[1]
    give_up_when(((row_bytes | col_bytes) & 3).differs(0))
    return _Matrix(
        data=fn.cast(fn.load(fn.cast(obj + _DATA, I64)), F32),
        rows=fn.var(I64, shape[0]),
        cols=fn.var(I64, shape[1]),
        row_step=fn.var(I64, fn.binary("ashr", row_bytes, 2)),
        col_step=fn.var(I64, fn.binary("ashr", col_bytes, 2)),
    )


def _number(fn: Function, give_up_when: _GiveUp, python: _Objects, obj: Value) -> Value:
    """A Python float, rounded to float32."""
    give_up_when(_type_of(fn, obj).differs(python["float"]))
    return fn.convert(fn.load(fn.cast(obj + _FLOAT_VALUE, F64)), F32)


def _threads(fn: Function, give_up_when: _GiveUp, python: _Objects, obj: Value, work: Value, as_integer: str) -> Value:
    """None or a positive int. Work for more threads than there are goes through Python, which starts them."""
    base = fn.symbol(f"@{SYMBOL}", I8)
    threads = fn.var(I64, fn.load(fn.cast(base + DEFAULT_THREADS_AT, I64)))
    with fn.when(fn.address(obj).differs(python["none"])):
        give_up_when(_type_of(fn, obj).differs(python["int"]))
        threads.set(fn.call_external(as_integer, I64, (pointer(I8),), obj))
        with fn.when(threads < 1):
            fn.call_external("PyErr_Clear", VOID, ())
        give_up_when(threads < 1)
    short = threads > fn.load(fn.cast(base + WORKERS_AT, I64)) + 1
    give_up_when(short & (work >= VECTOR_SERIAL))
    return threads.read()
