"""Reduction of a contiguous row on a CPU: the operator on two values, and a row by vectors, its terms in short chains.

    x       [ block 0            | block 1            | .. | rest ]
    block     CHAIN turns of ACCUMULATORS vectors: every lane of every accumulator adds CHAIN numbers
    total     a vector; each block's accumulators are added to it as a tree

A term goes through CHAIN additions in its block, three in the block's tree, and one for each block from there on: sums
of a million terms are as accurate as NumPy's, which halves the row again and again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I64, Type, pointer, vector
from gemmlab.ir.values import Operand, Value, Var

ACCUMULATORS = 8
"""Vectors that accumulate in turn: an addition takes four cycles, and two start in each."""
CHAIN = 64
SUM, MAX, MIN = 0, 1, 2
IDENTITIES = (0.0, -math.inf, math.inf)


def combine(fn: Function, operator: int, left: Value, right: Operand) -> Value:
    """Emit the sum, maximum or minimum of two values, as `operator` is `SUM`, `MAX` or `MIN`, and return it.

    Vectors are combined lane by lane. The result is NaN if either value is.
    """
    if operator == SUM:
        return left + right
    type_ = left.type
    suffix = f"{f'v{type_.lanes}' if type_.lanes > 1 else ''}f{type_.bits}"
    name = f"llvm.{'maximum' if operator == MAX else 'minimum'}.{suffix}"
    fn.declare(name, f"declare {type_} @{name}({type_}, {type_})")
    other = fn.constant(right, type_)
    return fn.emit(type_, f"call {type_} @{name}({type_} {left.name}, {type_} {other.name})")


def tree(fn: Function, operator: int, values: Sequence[Value]) -> Value:
    """Emit the combination of all values, and return it: adjacent ones in pairs, then adjacent results, and so on."""
    found = list(values)
    while len(found) > 1:
        pairs = [combine(fn, operator, one, two) for one, two in zip(found[::2], found[1::2], strict=False)]
        found = pairs + found[2 * len(pairs) :]
    return found[0]


def lanes_into_one(fn: Function, operator: int, value: Value) -> Value:
    """Emit the combination of a vector's lanes, and return it: lower with upper half, until one lane is left."""
    while value.type.lanes > 1:
        half = value.type.lanes // 2
        low, high = fn.shuffle(value, value, range(half)), fn.shuffle(value, value, range(half, 2 * half))
        value = combine(fn, operator, low, high)
    return value


def emit_row(module: Module, operator: int) -> Function:
    """Emit `reduce_row(n, x)`: one float from `n` contiguous elements; the operator's identity if n is 0."""
    lanes = module.lanes
    wide, turn = vector(F32, lanes), lanes * ACCUMULATORS
    with module.function("reduce_row", [("n", I64), ("x", pointer(F32))], F32) as fn:
        n, x = fn.args
        total = fn.var(wide, IDENTITIES[operator])
        whole = n - n % turn
        with fn.range(0, whole, turn * CHAIN) as start:
            parts = [fn.var(wide, IDENTITIES[operator]) for _ in range(ACCUMULATORS)]
            with fn.range(start, fn.minimum(start + turn * CHAIN, whole), turn) as i:
                for index, part in enumerate(parts):
                    part.set(combine(fn, operator, part.read(), fn.load(x + (i + index * lanes), lanes)))
            total.set(combine(fn, operator, total.read(), tree(fn, operator, [part.read() for part in parts])))
        _rest(fn, operator, x, whole, n, total, wide)
        fn.finish(lanes_into_one(fn, operator, total.read()))
    return fn


def _rest(fn: Function, operator: int, x: Value, first: Value, n: Value, total: Var, wide: Type) -> None:
    """Emit the combination of `total` with elements `first` to n - 1: whole vectors, then a part of one."""
    lanes = wide.lanes
    vectors = n - n % lanes
    with fn.range(first, vectors, lanes) as i:
        total.set(combine(fn, operator, total.read(), fn.load(x + i, lanes)))
    with fn.when(vectors < n):
        mask = fn.first_lanes(n - vectors, lanes)
        some = fn.select(mask, fn.load(x + vectors, lanes, mask), fn.constant(IDENTITIES[operator], wide), wide)
        total.set(combine(fn, operator, total.read(), some))


def row_roundings(n: int) -> int:
    """Return the most consecutive additions that one of `n` terms goes through, for vectors of 4 or more lanes."""
    blocks = -(-n // (4 * ACCUMULATORS * CHAIN))
    # Additions in its block, in the block's tree, from block to block, of vectors after the last turn, and of lanes.
    return CHAIN + 3 + blocks + ACCUMULATORS + 4
