"""Reductions of elements that are not contiguous: a row with gaps, or a nest of rows.

A row has elements at an even distance. If there are gaps, they go through sixteen accumulators, in chains as short as
those of `rowsum.emit_row`. A nest is the rows along one or more further axes. The sums of its rows, or the elements
themselves if the rows are short, are collected in a buffer that stays in the L1 cache and is summed as a row whenever
it is full. The totals of buffers and of blocks are added in double precision, so that their number does not matter.
Maxima and minima go the same way.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.codegen.axes import unravelled
from gemmlab.codegen.rowsum import CHAIN, IDENTITIES, combine, lanes_into_one, row_roundings, tree
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, F64, I8, I64, pointer, vector
from gemmlab.ir.values import Operand, Value

SCALARS = 16
"""Accumulators of a row with gaps: two additions start in each cycle, and each takes four."""
_GROUP = 4
_SIZE = 4
BUFFER = 2048
LONG = 128
"""Rows of a nest with at least this many elements are summed one by one; shorter ones are copied to the buffer."""
NEST = (
    ("x", pointer(I8)),
    ("first", I64),
    ("end", I64),
    ("length", I64),
    ("apart", I64),
    ("middle", I64),
    ("middle_apart", I64),
    ("axes", pointer(I64)),
    ("axis_count", I64),
)
"""Arguments of a nest at `x`, of which rows number `first` to `end` - 1 are reduced; distances are in bytes.

A row has `length` elements, `apart` from each other. The axis next to the rows has `middle` rows, `middle_apart` from
each other. `axes` has an extent and a step for each of the `axis_count` axes outside of that one, outermost first.
"""


def emit_apart(module: Module, operator: int) -> Function:
    """Emit `reduce_apart(n, x, apart)`: one float from `n` elements that lie `apart` bytes from each other.

    The module has `reduce_row` already.
    """
    row, every_second = module["reduce_row"], _emit_every_second(module, operator)
    with module.function("reduce_apart", [("n", I64), ("x", pointer(I8)), ("apart", I64)], F32) as fn:
        n, x, apart = fn.args
        with fn.when(apart.equals(_SIZE)):
            fn.ret(fn.call(row, n, fn.cast(x, F32)))
        total, begin = fn.var(F64, IDENTITIES[operator]), fn.var(I64, 0)
        with fn.when(apart.equals(2 * _SIZE)):
            begin.set((n - 1) - (n - 1) % (SCALARS * module.lanes // 2))
            total.set(fn.call(every_second, begin, fn.cast(x, F32)))
        # Addresses in groups: otherwise LLVM would keep one in a register for each accumulator.
        starts = [fn.var(pointer(I8), x + apart * (begin + index)) for index in range(0, SCALARS, _GROUP)]
        first = begin.read()
        whole = n - (n - first) % SCALARS

        with fn.range(first, whole, SCALARS * CHAIN) as start:
            parts = [fn.var(F32, IDENTITIES[operator]) for _ in range(SCALARS)]
            with fn.range(start, fn.minimum(start + SCALARS * CHAIN, whole), SCALARS):
                for group, at in enumerate(starts):
                    base = fn.opaque(at.read())
                    for index, part in enumerate(parts[group * _GROUP : (group + 1) * _GROUP]):
                        element = fn.load(fn.cast(base + apart * index, F32))
                        part.set(combine(fn, operator, part.read(), element))
                    at.set(base + apart * SCALARS)
            block = tree(fn, operator, [part.read() for part in parts])
            total.set(combine(fn, operator, total.read(), fn.convert(block, F64)))
        rest = starts[0]
        with fn.range(whole, n):
            element = fn.load(fn.cast(rest.read(), F32))
            total.set(combine(fn, operator, total.read(), fn.convert(element, F64)))
            rest.set(rest + apart)
        fn.finish(fn.convert(total.read(), F32))
    return fn


def _emit_every_second(module: Module, operator: int) -> Function:
    """Emit `reduce_every_second(n, x)`: a double from the first float of each of `n` adjacent pairs.

    n must be a multiple of `SCALARS` * lanes / 2. Both floats of each pair are read, and the second is replaced by the
    operator's identity.
    """
    lanes = module.lanes
    wide, turn = vector(F32, lanes), SCALARS * lanes
    with module.function("reduce_every_second", [("n", I64), ("x", pointer(F32))], F64) as fn:
        n, x = fn.args
        identity = fn.constant(IDENTITIES[operator], wide)
        total, end = fn.var(F64, IDENTITIES[operator]), n * 2
        with fn.range(0, end, turn * CHAIN) as start:
            parts = [fn.var(wide, IDENTITIES[operator]) for _ in range(SCALARS)]
            with fn.range(start, fn.minimum(start + turn * CHAIN, end), turn) as i:
                for index, part in enumerate(parts):
                    read = fn.load(x + (i + index * lanes), lanes)
                    evens = fn.shuffle(read, identity, [lane + lanes * (lane % 2) for lane in range(lanes)])
                    part.set(combine(fn, operator, part.read(), evens))
            block = lanes_into_one(fn, operator, tree(fn, operator, [part.read() for part in parts]))
            total.set(combine(fn, operator, total.read(), fn.convert(block, F64)))
        fn.finish(total.read())
    return fn


def emit_nest(module: Module, operator: int, apart_sum: Function) -> Function:
    """Emit `reduce_nest(*NEST)`: one float from some rows of a nest; `apart_sum` is the function that reduces a row."""
    row, lanes = module["reduce_row"], module.lanes
    with module.function("reduce_nest", NEST, F32) as fn:
        x, first, end, length, apart, middle, middle_apart, axes, count = fn.args
        buffer = fn.scratch(F32, BUFFER + LONG + lanes)
        filled, total = fn.var(I64, 0), fn.var(F64, IDENTITIES[operator])

        def empty() -> None:
            some = fn.call(row, filled, buffer)
            total.set(combine(fn, operator, total.read(), fn.convert(some, F64)))
            filled.set(0)

        def bring(place: Value) -> None:
            to = buffer + filled.read()
            with fn.choose(length >= LONG) as how:
                with how.yes():
                    to[0] = fn.call(apart_sum, length, place, apart)
                    filled.set(filled + 1)
                with how.no():
                    _copy(fn, to, place, length, apart, lanes)
                    filled.set(filled + length)
            with fn.when(filled >= BUFFER):
                empty()

        for_rows(fn, (first, end), (middle, middle_apart), axes, count, x, bring)
        empty()
        fn.finish(fn.convert(total.read(), F32))
    return fn


def for_rows(
    fn: Function,
    rows: tuple[Value, Value],
    middle: tuple[Value, Value],
    axes: Value,
    count: Operand,
    x: Value,
    body: Callable[[Value], None],
) -> None:
    """Emit `body(place)` for rows number `rows[0]` to `rows[1]` - 1 of a nest at `x`; `place` is a row's address.

    `middle` is the extent of the axis next to the rows and the step along it; `axes` has the `count` axes outside.
    """
    extent, step = middle
    at = fn.var(I64, rows[0])
    with fn.loop() as done:
        here = at.read()
        fn.leave_if(done, here >= rows[1])
        outer = here // extent
        inside = here - outer * extent
        many = fn.minimum(extent - inside, rows[1] - here)
        (moved,) = unravelled(fn, outer, axes, count, 1)
        place = fn.var(pointer(I8), x + (moved + inside * step))
        with fn.range(many):
            body(place.read())
            place.set(place + step)
        at.set(here + many)


def _copy(fn: Function, to: Value, place: Value, length: Value, apart: Value, lanes: int) -> None:
    """Emit the copy of a short row at `place` to `to`; up to `lanes` - 1 floats after the copy are overwritten."""
    with fn.choose(apart.equals(_SIZE)) as how:
        with how.yes():
            row = fn.cast(place, F32)
            with fn.range(0, length, lanes) as index:
                fn.store(to + index, fn.load(row + index, lanes, fn.first_lanes(length - index, lanes)))
        with how.no():
            at = fn.var(pointer(I8), place)
            with fn.range(length) as index:
                to[index] = fn.load(fn.cast(at.read(), F32))
                at.set(at + apart)


def nest_roundings(terms: int) -> int:
    """Return the most float32 additions that a term goes through in a result of `terms` terms, along any axes."""
    alone = max(row_roundings(-(-terms // 64) + 64), CHAIN + 8)
    # Additions in a row, in the buffer of the rows' sums, and of 64 parts; each double is rounded once.
    return alone + row_roundings(BUFFER + LONG) + row_roundings(64) + 4
