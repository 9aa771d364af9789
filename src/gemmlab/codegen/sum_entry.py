"""The entry to sums for NumPy arrays: it makes the result and carries out the plan, without ctypes."""

from __future__ import annotations

from gemmlab.codegen.python_objects import (
    DATA,
    DESCR,
    METHOD,
    giving_up,
    new_array,
    python_words,
    type_of,
    without_lock,
)  # fmt: skip
from gemmlab.codegen.reductions import PLAN, SUMS
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, F64, I8, I64, pointer


def emit_python_sum(module: Module, name: str) -> Function:
    """Emit the Python function `name(x, plan, threads)`: a new array, or a float for a result without axes.

    x is the array that the plan was made for, plan an int, the plan's address, and threads a positive int. The function
    returns None, without an effect, if x is not a float32 array of NumPy's own class, or if there is no memory. The
    module has `reductions.SUMS` already.
    """
    with module.function(name, METHOD, pointer(I8), exported=True) as fn:
        _self, args, count = fn.args
        python = python_words(fn)
        give_up_when = giving_up(fn, python)
        give_up_when(count.differs(3))
        x = fn.cast(args[0], I8)
        give_up_when(type_of(fn, x).differs(python["ndarray"]))
        give_up_when(fn.load(fn.cast(x + DESCR, I64)).differs(python["float32"]))
        # C's long has 32 bits on Windows.
        as_integer = "PyLong_AsLongLong" if module.target.windows else "PyLong_AsLong"
        words = [fn.call_external(as_integer, I64, (pointer(I8),), fn.cast(args[index], I8)) for index in (1, 2)]
        plan, threads = fn.cast(words[0], I64), words[1]
        data = fn.cast(fn.load(fn.cast(x + DATA, I64)), I8)
        axes = plan[PLAN.index("result_axes")]
        number = fn.scratch(F32, 1)
        place, made = fn.var(pointer(I8), fn.cast(number, I8)), fn.var(pointer(I8), 0)
        with fn.when(axes > 0):
            made.set(new_array(fn, python, axes, plan + plan[PLAN.index("dims_at")]))
            missing = fn.address(made.read()).equals(0)
            give_up_when(missing)
            place.set(fn.cast(fn.load(fn.cast(made.read() + DATA, I64)), I8))
        without_lock(fn, plan[PLAN.index("elements")], lambda: fn.call(module[SUMS], plan, data, place.read(), threads))
        with fn.when(axes > 0):
            fn.ret(made.read())
        fn.finish(fn.call_external("PyFloat_FromDouble", pointer(I8), (F64,), fn.convert(number[0], F64)))
    return fn
