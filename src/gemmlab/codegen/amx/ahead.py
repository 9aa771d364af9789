"""The next strip of B, split row by row while tiles multiply.

A tile instruction is one micro-operation for 16 cycles. Meanwhile the vector units, most issue slots and the paths from
memory are idle. Each call of `split_ahead` splits one pair of rows of the next strip, k and k + 16; there is one call
for four tile instructions. If nothing is left to split, a call prefetches part of the next packed strip into L2. The
state is in memory:

    word 0        1        2             3       4            5               8 ..
    pairs left    source   row of tile   out     row stride   line to fetch   extremes (`split.py`)
"""

from __future__ import annotations

from gemmlab.codegen.amx.split import Extremes, split_row, step_bytes
from gemmlab.codegen.amx.tile_registers import DEPTH, ROW_BYTES, ROWS, TILE_BYTES
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I8, I32, I64, pointer
from gemmlab.ir.values import Operand, Value

_LEFT, _SOURCE, _ROW, _OUT, _STRIDE, _NEXT, _EXTREMES = 0, 1, 2, 3, 4, 5, 8
_LINES_A_CALL = 4
"""Cache lines that a call prefetches. With six products of parts and 1024 steps of k, multiplying four panels by a
strip makes 768 calls, which prefetch 3,072 lines, as many as the next strip has.
"""
WORDS = _EXTREMES + ROWS
AHEAD = pointer(I64)


def extremes_of(fn: Function, state: Value) -> Value:
    """Return the address of the largest and least magnitudes of the strip that is split (`split.Extremes`)."""
    return fn.cast(state + _EXTREMES, I32)


def fetch(fn: Function, state: Value, packed: Value) -> None:
    """Emit code after which calls of `split_ahead` prefetch the packed strip at `packed` into L2 and split nothing."""
    state[_LEFT] = 0
    state[_NEXT] = fn.address(packed)


def start(fn: Function, state: Value, depth: Value, source: Value, stride: Value, out: Value) -> None:
    """Emit code after which calls of `split_ahead` split a strip of 32 columns with contiguous rows, `stride` floats
    apart, from `source` to `out`.

    If `depth`, the number of steps of k, is no multiple of 32, the last `depth` % 32 steps are not split. The extremes
    are not reset.
    """
    for word, item in ((_LEFT, depth // DEPTH * ROWS), (_ROW, 0), (_STRIDE, stride)):
        state[word] = item
    state[_SOURCE] = fn.address(source)
    state[_OUT] = fn.address(out)


def finished(state: Value, depth: Value) -> Value:
    """Emit the number of steps of k, a multiple of 32, that are split so far of a strip of `depth` steps; return it."""
    done: Value = (depth // DEPTH * ROWS - state[_LEFT]) // ROWS * DEPTH
    return done


def emit_split_ahead(module: Module, parts: int) -> Function:
    """Emit `split_ahead(state)`: split a pair of rows, 32 columns wide, or prefetch if none is left."""
    with module.function("split_ahead", [("state", AHEAD)]) as fn:
        (state,) = fn.args
        left = state[_LEFT]
        with fn.when(left.equals(0)):
            line = fn.cast(state[_NEXT], I8)
            for number in range(_LINES_A_CALL):
                fn.prefetch(line + number * ROW_BYTES, locality=2)
            state[_NEXT] = state[_NEXT] + _LINES_A_CALL * ROW_BYTES
        with fn.when(left > 0):
            source, row, out, stride = (
                fn.cast(state[_SOURCE], F32),
                state[_ROW],
                fn.cast(state[_OUT], I8),
                state[_STRIDE],
            )
            found = Extremes(fn, extremes_of(fn, state))
            for half in (0, 1):
                to = out + half * TILE_BYTES
                split_row(fn, source + half * ROWS, stride * ROWS, to, 2 * TILE_BYTES, parts, found)
            found.save()
            last = row.equals(ROWS - 1)

            def step(word: int, usual: Operand, at_end: Operand) -> None:
                state[word] = state[word] + fn.select(last, at_end, usual)

            # From the last pair of 32 rows, 15 and 31, to row 32.
            step(_SOURCE, stride * 4, stride * (4 * (ROWS + 1)))
            step(_OUT, ROW_BYTES, step_bytes(parts) - (ROWS - 1) * ROW_BYTES)
            step(_ROW, 1, 1 - ROWS)
            state[_LEFT] = left - 1
        fn.finish()
    return fn
