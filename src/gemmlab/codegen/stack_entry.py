"""The entry for products of NumPy arrays of which one or more do not have two axes, read from NumPy's structures.

The axes before the last two are aligned at their ends and broadcast, as in `numpy.matmul`. A one-dimensional left
operand is a row, a right one a column. Unusual cases are left to Python, as in `entry.emit_python_entry`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.entry import options, result_array, slot_flag, workspace_at
from gemmlab.codegen.python_objects import (
    DATA,
    DESCR,
    METHOD,
    NDIM,
    SHAPE,
    STRIDES,
    GiveUp,
    axis_count,
    giving_up,
    python_words,
    read_only,
    thread_word,
    type_of,
    without_lock,
)  # fmt: skip
from gemmlab.codegen.runtime import SYMBOL
from gemmlab.codegen.stacks import AXIS_WORDS, MOST_AXES, stack_cost
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I8, I32, I64, pointer
from gemmlab.ir.values import Operand, Value, Var


@dataclass(frozen=True, slots=True)
class _Array:
    """A stack of matrices, as an array of NumPy has it.

    `data` is the address of the first element. `rows`, `cols`, `row_step` and `col_step` are a matrix's extents and
    steps, in elements. `shape` and `strides` are the addresses of the whole array's extents and of its steps in bytes;
    the leading axes, those before the matrix's own, come first.
    """

    data: Value
    rows: Var
    cols: Var
    row_step: Var
    col_step: Var
    shape: Value
    strides: Value
    leading: Value
    """Number of leading axes."""

    def swap_if(self, fn: Function, condition: Value) -> None:
        """Emit code that transposes the matrices if the condition holds, by an exchange of their extents and steps."""
        with fn.when(condition):
            for one, two in ((self.rows, self.cols), (self.row_step, self.col_step)):
                first, second = one.read(), two.read()
                one.set(second)
                two.set(first)


def emit_python_stack(module: Module, stack: Function, name: str) -> Function:
    """Emit the Python function `name(a, b, out, c, alpha, beta, trans_a, trans_b, threads)`.

    It returns the result, or None, without an effect, if an argument is not as follows. a, b: float32 `numpy.ndarray`s
    with elements, whose leading axes can be broadcast; out: None for a new array, or such an array of the result's
    shape that is writeable, shares no memory with a and b, and whose matrices do not overlap, lie in C order, and are
    contiguous along rows or along columns; the others: as in `entry.emit_python_entry`, and so are the other reasons
    for None. The number of arguments is not checked.
    """
    with module.function(name, METHOD, pointer(I8)) as fn:
        _self, args, _count = fn.args
        base = fn.symbol(f"@{SYMBOL}", I8)
        python = python_words(fn)
        give_up_when = giving_up(fn, python)
        objects = [fn.cast(args[index], I8) for index in range(9)]
        has_out = fn.address(objects[2]).differs(python["none"])
        alpha, beta, turned_a, turned_b = options(fn, give_up_when, python, objects)

        def refuse_others(obj: Value) -> None:
            give_up_when(type_of(fn, obj).differs(python["ndarray"]))
            give_up_when(fn.load(fn.cast(obj + DESCR, I64)).differs(python["float32"]))

        for obj in objects[:2]:
            refuse_others(obj)
        row, column = (axis_count(fn, obj).equals(1) for obj in objects[:2])
        no = fn.index(1).equals(0)
        a = _array(fn, give_up_when, objects[0], row, no)
        b = _array(fn, give_up_when, objects[1], no, column)
        a.swap_if(fn, turned_a & row.equals(0))
        b.swap_if(fn, turned_b & column.equals(0))
        give_up_when(a.cols.read().differs(b.rows) | (a.rows < 1) | (a.cols < 1) | (b.cols < 1))
        # The structure of `out`; without `out`, one like that of a new array.
        stand_in = _stand_in(fn, a, b, row, column)
        target = fn.var(pointer(I8), stand_in)
        with fn.when(has_out):
            refuse_others(objects[2])
            give_up_when(read_only(fn, objects[2]))
            target.set(objects[2])
        out = _array(fn, give_up_when, target.read(), row, column)
        give_up_when(a.rows.read().differs(out.rows) | b.cols.read().differs(out.cols))
        # A column-major result is the row-major product of the transposes.
        turned = (out.col_step.differs(1) & out.cols.differs(1)) & out.row_step.equals(1)
        for matrix in (a, b, out):
            matrix.swap_if(fn, turned)
        left, right = _either(fn, turned, b, a), _either(fn, turned, a, b)
        m, k, n = left.rows.read(), left.cols.read(), right.cols.read()
        ldc = out.row_step.read()
        give_up_when((out.col_step.differs(1) & n.differs(1)) | ((ldc < n) & m.differs(1)))
        axes = fn.scratch(I64, MOST_AXES * AXIS_WORDS)
        total = _stack_axes(fn, give_up_when, axes, left, right, out, has_out)
        cost = stack_cost(total, m, n, k)
        threads = thread_word(fn, give_up_when, python, objects[8], cost, module.target)
        slot = fn.call(module["take_workspace"])
        give_up_when(slot < 0)
        data = fn.var(pointer(F32), out.data)
        shape = axis_count(fn, target.read()), out.shape
        result = result_array(fn, give_up_when, python, objects[2], shape, slot, data)
        call = (
            m, n, k, alpha, left.data, left.row_step, left.col_step, right.data, right.row_step, right.col_step, beta,
            data.read(), ldc, workspace_at(fn, slot), base, threads, axes, out.leading,
        )  # fmt: skip
        without_lock(fn, cost, lambda: fn.call(stack, *call))
        fn.atomic_store(slot_flag(fn, slot), 0)
        fn.finish(result)
    return fn


def _stand_in(fn: Function, a: _Array, b: _Array, row: Value, column: Value) -> Value:
    """Emit code that fills a NumPy array structure for a new result, and return the structure's address.

    It has the result's shape and strides, but no elements.
    """
    structure = fn.scratch(I8, DESCR)
    shape, strides = fn.scratch(I64, MOST_AXES + 2), fn.scratch(I64, MOST_AXES + 2)
    leading = fn.maximum(a.leading, b.leading)
    count = leading + 2 - fn.zero_extend(row) - fn.zero_extend(column)
    fn.cast(structure + DATA, I64)[0] = 0
    fn.cast(structure + NDIM, I32)[0] = fn.convert(count, I32)
    fn.cast(structure + SHAPE, I64)[0] = fn.address(shape)
    fn.cast(structure + STRIDES, I64)[0] = fn.address(strides)
    with fn.range(leading) as index:
        extent = fn.var(I64, 1)
        for array in (a, b):
            own = index - (leading - array.leading)
            with fn.when(own >= 0):
                extent.set(fn.select(extent.equals(1), array.shape[own], extent))
        shape[index] = extent
    with fn.when(row.equals(0)):
        shape[leading] = a.rows
    with fn.when(column.equals(0)):
        shape[count - 1] = b.cols
    step = fn.var(I64, 4)
    with fn.range(count) as done:
        index = count - 1 - done
        strides[index] = step
        step.set(step * shape[index])
    return structure


def _array(fn: Function, give_up_when: GiveUp, obj: Value, row: Value, column: Value) -> _Array:
    """Emit code that reads the array `obj`, and return its matrices.

    If `row` or `column` holds, the array lacks the axis of rows or that of columns, whose extent is then 1. The code
    gives up if the array has too few axes or too many, or if a step is not whole elements.
    """
    count = axis_count(fn, obj)
    missing = fn.zero_extend(row) + fn.zero_extend(column)
    leading = count - 2 + missing
    give_up_when((leading < 0) | (leading > MOST_AXES))
    shape, strides = (fn.cast(fn.load(fn.cast(obj + word, I64)), I64) for word in (SHAPE, STRIDES))
    rows, cols, row_step, col_step = (fn.var(I64, 1) for _ in range(4))
    with fn.when(row.equals(0)):
        rows.set(shape[leading])
        row_step.set(_elements(fn, give_up_when, strides[leading]))
    with fn.when(column.equals(0)):
        last = leading + (1 - fn.zero_extend(row))
        cols.set(shape[last])
        col_step.set(_elements(fn, give_up_when, strides[last]))
    data = fn.cast(fn.load(fn.cast(obj + DATA, I64)), F32)
    return _Array(data, rows, cols, row_step, col_step, shape, strides, leading)


def _elements(fn: Function, give_up_when: GiveUp, nbytes: Value) -> Value:
    give_up_when((nbytes & 3).differs(0))
    return fn.binary("ashr", nbytes, 2)


def _either(fn: Function, condition: Value, yes: _Array, no: _Array) -> _Array:
    """Emit the choice of the array `yes` if the condition holds, else `no`, and return it."""

    def pick(one: Operand, two: Operand) -> Var:
        return fn.var(I64, fn.select(condition, one, two))

    words = pointer(I64)
    return _Array(
        fn.select(condition, yes.data, no.data, pointer(F32)),
        pick(yes.rows, no.rows),
        pick(yes.cols, no.cols),
        pick(yes.row_step, no.row_step),
        pick(yes.col_step, no.col_step),
        fn.select(condition, yes.shape, no.shape, words),
        fn.select(condition, yes.strides, no.strides, words),
        fn.select(condition, yes.leading, no.leading),
    )


def _stack_axes(
    fn: Function, give_up_when: GiveUp, axes: Value, left: _Array, right: _Array, out: _Array, has_out: Value
) -> Value:
    """Emit code that fills `axes` with the leading axes, as in `stacks.STACK`, and return the number of products.

    The code gives up if the leading axes cannot be broadcast or are not those of `out`, if an extent is 0, or if
    matrices of `out` overlap each other, are not in C order, or (if `has_out`) share memory with an operand.
    """
    give_up_when(out.leading.differs(fn.maximum(left.leading, right.leading)))
    total = fn.var(I64, 1)
    arrays = (left, right, out)
    reaches = [[fn.var(I64, 0), fn.var(I64, 0)] for _ in arrays]

    def extend(reach: list[Var], extent: Operand, step: Operand) -> None:
        far = (fn.index(extent) - 1) * step
        low, high = reach
        low.set(low + fn.minimum(far, 0))
        high.set(high + fn.maximum(far, 0))

    for array, reach in zip(arrays, reaches, strict=True):
        extend(reach, array.rows, array.row_step)
        extend(reach, array.cols, array.col_step)
    # Elements that the axes of `out` so far span, from the first to the one after the last.
    size = fn.var(I64, (out.rows - 1) * out.row_step + out.cols)
    with fn.range(out.leading) as done:
        index = out.leading - 1 - done
        axis = axes + index * AXIS_WORDS
        extent = out.shape[index]
        give_up_when(extent < 1)
        axis[0] = extent
        total.set(total * extent)
        found = fn.var(I64, 0)
        for word, (array, reach) in enumerate(zip(arrays, reaches, strict=True), 1):
            own = index - (out.leading - array.leading)
            step = fn.var(I64, 0)
            with fn.when(own >= 0):
                mine = array.shape[own]
                give_up_when(mine.differs(extent) & mine.differs(1))
                with fn.when(mine.equals(extent)):
                    step.set(_elements(fn, give_up_when, array.strides[own]))
                    if array is not out:
                        found.set(1)
            axis[word] = step
            extend(reach, extent, step)
        give_up_when(found.equals(0) & extent.differs(1))
        apart = axis[3]
        give_up_when((apart < size) & extent.differs(1))
        size.set(size + apart * (extent - 1))
    first, last = (fn.address(out.data) + 4 * edge.read() for edge in reaches[2])
    for array, (low, high) in zip(arrays[:2], reaches[:2], strict=True):
        where = fn.address(array.data)
        give_up_when(has_out & (where + 4 * low.read() <= last + 3) & (first <= where + 4 * high.read() + 3))
    return total.read()
