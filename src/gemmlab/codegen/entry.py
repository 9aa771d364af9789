"""The entries of the compiled product: for C callers, one product or a stack of them, and for Python arrays.

`emit_c_entry` and `emit_stack_entry` emit the functions that kernels export and ctypes calls. `emit_python_entry` emits
a METH_FASTCALL function that reads NumPy's array structure itself: for three plain float32 matrices a whole call costs
some tenths of a microsecond. This function serves the common case only. For anything else it returns None, and the
general front end in Python prepares the operands or raises an error that says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemmlab.codegen.macrokernel import JOB
from gemmlab.codegen.python_objects import (
    DATA,
    DESCR,
    METHOD,
    SHAPE,
    STRIDES,
    GiveUp,
    Objects,
    axis_count,
    giving_up,
    new_array,
    number,
    python_words,
    read_only,
    thread_word,
    type_of,
    without_lock,
)  # fmt: skip
from gemmlab.codegen.runtime import SLOTS, SLOTS_AT, SYMBOL
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I1, I8, I64, VOID, Type, pointer
from gemmlab.ir.values import Operand, Value, Var

DONE, NO_WORKSPACE = 0, 1

Signature = Sequence[tuple[str, Type]]
C_ENTRY = (*(argument for argument in JOB if argument[0] != "workspace"), ("threads", I64))

STACK_ENTRY = (*C_ENTRY, ("axes", pointer(I64)), ("axis_count", I64))


def emit_c_entry(module: Module, product: Function, name: str) -> Function:
    """Emit the exported function `name(*C_ENTRY)`, which calls `product` with a workspace of the runtime.

    It returns 0, or 1 if no workspace is free; then nothing is computed. The other entries of this file need a module
    for which this has been called.
    """
    module.imported(SYMBOL)
    _emit_workspace(module)
    return _emit_with_workspace(module, product, name, C_ENTRY)


def emit_stack_entry(module: Module, stack: Function, name: str) -> Function:
    """Emit the exported function `name(*STACK_ENTRY)`: as in `emit_c_entry`, for the stack of products `stack`."""
    return _emit_with_workspace(module, stack, name, STACK_ENTRY)


def _emit_with_workspace(module: Module, callee: Function, name: str, signature: Signature) -> Function:
    with module.function(name, signature, I64, exported=True) as fn:
        base = fn.symbol(f"@{SYMBOL}", I8)
        slot = fn.call(module["take_workspace"])
        with fn.when(slot < 0):
            fn.ret(NO_WORKSPACE)
        at = len(JOB) - 1
        fn.call(callee, *fn.args[:at], workspace_at(fn, slot), base, *fn.args[at:])
        fn.atomic_store(slot_flag(fn, slot), 0)
        fn.finish(DONE)
    return fn


def slot_flag(fn: Function, index: Operand) -> Value:
    """Return the address of the word that is 0 if workspace number `index` is free, and 1 if it is taken or absent."""
    base = fn.symbol(f"@{SYMBOL}", I8)
    return fn.cast(base + (fn.index(index) * 16 + SLOTS_AT), I64)


def workspace_at(fn: Function, slot: Value) -> Value:
    """Return the address of workspace number `slot`, which the runtime stores after the workspace's flag."""
    return fn.cast(fn.load(slot_flag(fn, slot) + 1), F32)


def _emit_workspace(module: Module) -> None:
    with module.function("take_workspace", [], I64) as fn:
        with fn.range(SLOTS) as index:
            flag = slot_flag(fn, index)
            with fn.when(fn.atomic_load(flag).equals(0)), fn.when(fn.compare_exchange(flag, 0, 1)):
                fn.ret(index)
        fn.finish(-1)


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A two-dimensional array: its first element, extents, and steps in elements."""

    data: Value
    rows: Var
    cols: Var
    row_step: Var
    col_step: Var

    def swap_if(self, fn: Function, condition: Value) -> None:
        """Emit code that transposes the matrix if the condition holds, by an exchange of its extents and steps."""
        with fn.when(condition):
            rows, cols = self.rows.read(), self.cols.read()
            self.rows.set(cols)
            self.cols.set(rows)
            row_step, col_step = self.row_step.read(), self.col_step.read()
            self.row_step.set(col_step)
            self.col_step.set(row_step)

    def extent(self, fn: Function) -> tuple[Value, Value]:
        """Emit the lowest and the highest address of a byte of its elements, and return both; steps may be negative."""
        base = fn.address(self.data)
        down, over = (self.rows - 1) * self.row_step * 4, (self.cols - 1) * self.col_step * 4
        low = base + fn.minimum(down, 0) + fn.minimum(over, 0)
        high = base + fn.maximum(down, 0) + fn.maximum(over, 0) + 3
        return low, high


def emit_python_entry(module: Module, product: Function, stack: Function, name: str) -> Function:
    """Emit the Python function `name(a, b, out, c, alpha, beta, trans_a, trans_b, threads)`.

    It returns the result, or None, without an effect, if an argument is not as follows. a, b: float32 `numpy.ndarray`s
    of two axes and with elements, whose extents match; out: None for a new array, or such an array that is writeable,
    has contiguous rows and shares no memory with a and b; c: the same object as out, or None with beta == 0; alpha,
    beta: Python floats; trans_a, trans_b: bools; threads: as in `thread_word`. It also returns None if no workspace or
    no memory is free, or if workers must be started first. If a, b or out has another number of axes, `stack` is called
    with the same arguments.
    """
    with module.function(name, METHOD, pointer(I8), exported=True) as fn:
        _self, args, count = fn.args
        base = fn.symbol(f"@{SYMBOL}", I8)
        python = python_words(fn)
        give_up_when = giving_up(fn, python)
        give_up_when(count.differs(9))
        objects = [fn.cast(args[index], I8) for index in range(9)]
        has_out = fn.address(objects[2]).differs(python["none"])
        others = fn.var(I64, 0)
        for obj in objects[:2]:
            give_up_when(type_of(fn, obj).differs(python["ndarray"]))
            others.set(others | (axis_count(fn, obj) - 2))
        with fn.when(has_out):
            give_up_when(type_of(fn, objects[2]).differs(python["ndarray"]))
            others.set(others | (axis_count(fn, objects[2]) - 2))
        with fn.when(others.differs(0)):
            fn.ret(fn.call(stack, *fn.args))
        a, b = (_matrix(fn, give_up_when, python, obj) for obj in objects[:2])
        alpha, beta, turned_a, turned_b = options(fn, give_up_when, python, objects)
        a.swap_if(fn, turned_a)
        b.swap_if(fn, turned_b)
        m, k, n = a.rows.read(), a.cols.read(), b.cols.read()
        give_up_when(k.differs(b.rows) | (m < 1) | (n < 1) | (k < 1))
        data, ldc = fn.var(pointer(F32), 0), fn.var(I64, n)
        with fn.when(has_out):
            out = _matrix(fn, give_up_when, python, objects[2])
            give_up_when(m.differs(out.rows) | n.differs(out.cols) | read_only(fn, objects[2]))
            give_up_when(out.col_step.differs(1) | ((out.row_step < n) & m.differs(1)))
            first, last = out.extent(fn)
            for matrix in (a, b):
                low, high = matrix.extent(fn)
                give_up_when((low <= last) & (first <= high))
            data.set(out.data)
            ldc.set(out.row_step)
        threads = thread_word(fn, give_up_when, python, objects[8], m * n * k, module.target)
        slot = fn.call(module["take_workspace"])
        give_up_when(slot < 0)
        dims = fn.scratch(I64, 2)
        dims[0] = m
        dims[1] = n
        result = result_array(fn, give_up_when, python, objects[2], (fn.index(2), dims), slot, data)
        arguments = (m, n, k, alpha, a.data, a.row_step, a.col_step, b.data, b.row_step, b.col_step, beta)
        call = (*arguments, data.read(), ldc.read(), workspace_at(fn, slot), base, threads)
        without_lock(fn, m * n * k, lambda: fn.call(product, *call))
        fn.atomic_store(slot_flag(fn, slot), 0)
        fn.finish(result)
    return fn


def result_array(
    fn: Function, give_up_when: GiveUp, python: Objects, out: Value, shape: tuple[Value, Value], slot: Value, data: Var
) -> Value:
    """Emit code for the result, and return it: a new reference to `out`, or a new array if `out` is None.

    For a new array, `data` is set to its first element. `shape` is the number of axes and the address of their extents.
    If there is no memory, the code frees workspace number `slot` and gives up.
    """
    result = fn.var(pointer(I8), out)
    with fn.choose(fn.address(out).equals(python["none"])) as fresh:
        with fresh.yes():
            count, dims = shape
            made = new_array(fn, python, count, dims)
            missing = fn.address(made).equals(0)
            with fn.when(missing):
                fn.atomic_store(slot_flag(fn, slot), 0)
            give_up_when(missing)
            result.set(made)
            data.set(fn.cast(fn.load(fn.cast(made + DATA, I64)), F32))
        with fresh.no():
            fn.call_external("Py_IncRef", VOID, (pointer(I8),), out)
    return result.read()


def options(
    fn: Function, give_up_when: GiveUp, python: Objects, objects: Sequence[Value]
) -> tuple[Value, Value, Value, Value]:
    """Emit code that reads the options, and return (alpha, beta, whether a is transposed, whether b is).

    `objects` are the Python arguments. The code gives up if alpha or beta is not a number that `number` reads, if a
    flag is not a bool, if `c` is neither None nor `out`, or if `c` is None and beta is not 0.
    """
    alpha, beta = (number(fn, give_up_when, python, obj) for obj in objects[4:6])
    addend = fn.address(objects[3])
    absent = addend.equals(python["none"])
    own = addend.equals(fn.address(objects[2]))
    give_up_when(fn.select(absent, beta.differs(0.0), own.equals(0), I1).differs(0))
    turned = []
    for flag in objects[6:8]:
        where = fn.address(flag)
        turned.append(where.equals(python["true"]))
        give_up_when(where.differs(python["true"]) & where.differs(python["false"]))
    return alpha, beta, turned[0], turned[1]


def _matrix(fn: Function, give_up_when: GiveUp, python: Objects, obj: Value) -> _Matrix:
    give_up_when(fn.load(fn.cast(obj + DESCR, I64)).differs(python["float32"]))
    shape = fn.cast(fn.load(fn.cast(obj + SHAPE, I64)), I64)
    strides = fn.cast(fn.load(fn.cast(obj + STRIDES, I64)), I64)
    row_bytes, col_bytes = strides[0], strides[1]
    give_up_when(((row_bytes | col_bytes) & 3).differs(0))
    return _Matrix(
        data=fn.cast(fn.load(fn.cast(obj + DATA, I64)), F32),
        rows=fn.var(I64, shape[0]),
        cols=fn.var(I64, shape[1]),
        row_step=fn.var(I64, fn.binary("ashr", row_bytes, 2)),
        col_step=fn.var(I64, fn.binary("ashr", col_bytes, 2)),
    )
