"""Operands split into bfloat16 parts while they are packed into tiles.

A float32 has 24 significant bits, a bfloat16 8 and the same exponents. Each part is the remainder after the parts
before it, rounded to nearest, so three parts have every bit:

    x = high + mid + low        |mid| <= 2^-8 |x|        |low| <= 2^-16 |x|

A line is a row of A or a column of B. A tile has 16 lines and 32 steps of k, two of them in each 32-bit word. The order
of k within a tile is free as long as both operands have the same, so k and k + 16 share a word:

    A tile: word p of row i  has steps p and p + 16 of line i
    B tile: word j of row p  has steps p and p + 16 of line j

If memory is contiguous along k, words come out in rows of one line (`along`), as A needs them. If it is contiguous from
line to line, they come out in rows of one pair of k (`across`), as B needs them. Otherwise squares of 16 x 16 words are
transposed. Ragged edges and other strides go through a square that is filled with zeros.

The packers also find the largest magnitude and the least one that is not 0, by which `blocked_product._emit_fits`
decides whether tiles may be used.
"""

from __future__ import annotations

from collections.abc import Sequence

from gemmlab.codegen.amx.tile_registers import DEPTH, ROW_BYTES, ROWS, TILE_BYTES
from gemmlab.codegen.microkernel import FLOATS
from gemmlab.codegen.packing import transpose
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I8, I32, I64, Type, pointer, vector
from gemmlab.ir.values import Operand, Value

LINES = 2 * ROWS
"""The most lines of a packed panel of A or strip of B: those of two tiles."""
BYTES = pointer(I8)
_WORDS = vector(I32, ROWS)
_HALF_UNIT, _UPPER = 0x8000, -0x10000
_MAGNITUDE = 0x7FFFFFFF
_SQUARE = (("source", FLOATS), ("step", I64), ("out", BYTES), ("part_bytes", I64), ("extremes", pointer(I32)))
"""Arguments of the split of a square: 16 lines of 32 steps of k at `source`, contiguous along one and `step` apart
along the other. The tiles of the parts begin at `out`, `part_bytes` apart. `extremes` is the address of 16 largest
magnitudes, one for each lane, and of 16 least ones minus 1, as the bits of floats.
"""

SPLIT = (
    ("lines", I64), ("first", I64), ("depth", I64), ("source", FLOATS), ("line_step", I64), ("k_step", I64),
    ("out", BYTES), ("extremes", pointer(I32)),
)  # fmt: skip


def step_bytes(parts: int) -> int:
    """Return the bytes of 32 steps of k in a packed panel or strip: for each part, the two tiles of 16 lines."""
    return parts * 2 * TILE_BYTES


def emit_split(module: Module, name: str, parts: int, *, lines_are_rows: bool) -> Function:
    """Emit `name(*SPLIT)`: pack steps `first` to `depth` - 1 of k of up to 32 lines, and update the extremes.

    `first` must be a multiple of 32. `lines_are_rows` is true for tiles of A, false for tiles of B. `parts` must be the
    same in all calls for a module.
    """
    squares = {
        kind: module[kind] if kind in module else _emit_square(module, kind, parts)
        for kind in ("split_along", "split_across")
    }
    turn = module["turn_words"] if "turn_words" in module else _emit_turn(module, parts)
    gather = module["gather_square"] if "gather_square" in module else _emit_gather(module)
    with module.function(name, SPLIT, noalias=("source", "out")) as fn:
        lines, first, depth, source, line_step, k_step, out, extremes = fn.args
        square, turned = fn.scratch(F32, ROWS * DEPTH), fn.scratch(I8, parts * TILE_BYTES)
        apart = 2 * TILE_BYTES

        def split(kind: str, at: Value, step: Value, to: Value) -> None:
            if (kind == "split_along") == lines_are_rows:
                fn.call(squares[kind], at, step, to, apart, extremes)
            else:
                fn.call(squares[kind], at, step, turned, TILE_BYTES, extremes)
                fn.call(turn, turned, to)

        with fn.range(first, depth, DEPTH) as k, fn.range(2) as half:
            at = source + line_step * (half * ROWS) + k_step * k
            to = out + k // DEPTH * step_bytes(parts) + half * TILE_BYTES
            wide, deep = lines - half * ROWS, depth - k
            whole = (wide >= ROWS) & (deep >= DEPTH)
            with fn.choose(whole & k_step.equals(1)) as way:
                with way.yes():
                    split("split_along", at, line_step, to)
                with way.no(), fn.choose(whole & line_step.equals(1)) as other:
                    with other.yes():
                        split("split_across", at, k_step, to)
                    with other.no():
                        fn.call(gather, wide, fn.minimum(deep, DEPTH), at, line_step, k_step, square)
                        split("split_along", square, fn.index(DEPTH), to)
        fn.finish()
    return fn


def emit_extremes(module: Module) -> tuple[Function, Function]:
    """Emit `clear_extremes(extremes)`, which prepares extremes, and `find_range(extremes, range)`.

    `range` receives two integers: the bits of the largest magnitude, and the bits of the least magnitude that is not 0,
    minus 1. The second is 2^32 - 1 if all elements are 0.
    """
    with module.function("clear_extremes", [("extremes", pointer(I32))]) as clear:
        (extremes,) = clear.args
        clear.store(extremes, clear.constant(0, _WORDS))
        clear.store(extremes + ROWS, clear.constant(-1, _WORDS))
        clear.finish()
    with module.function("find_range", [("extremes", pointer(I32)), ("range", pointer(I64))]) as find:
        extremes, found = find.args
        for word, (operator, at) in enumerate((("smax", extremes), ("umin", extremes + ROWS))):
            found[word] = find.zero_extend(_over_lanes(find, operator, find.load(at, ROWS)))
        find.finish()
    return clear, find


def _emit_square(module: Module, name: str, parts: int) -> Function:
    """Emit `name(*_SQUARE)`, which splits a square into words and updates the extremes.

    `split_along` is for a square that is contiguous along k, and writes rows of one line each; `split_across` is for
    one that is contiguous from line to line, and writes rows of one pair of k each.
    """
    with module.function(name, _SQUARE, noalias=("source", "out")) as fn:
        source, step, out, part_bytes, extremes = fn.args
        found = Extremes(fn, extremes)
        # Elements of a pair: ROWS apart along k.
        apart = fn.index(ROWS) if name == "split_along" else step * ROWS
        with fn.range(ROWS) as row:
            split_row(fn, source + step * row, apart, out + row * ROW_BYTES, part_bytes, parts, found)
        found.save()
        fn.finish()
    return fn


def split_row(
    fn: Function, source: Value, apart: Operand, out: Value, part_bytes: Operand, parts: int, found: Extremes
) -> None:
    """Emit the split of two vectors, at `source` and `apart` elements further, into a row of words for each part.

    The rows are written at `out`, `part_bytes` apart; `found` includes the elements.
    """
    pair = [_bits(fn, fn.load(place, ROWS)) for place in (source, source + apart)]
    found.watch(pair)
    for part, (one, two) in enumerate(zip(*(_parts(fn, bits, parts) for bits in pair), strict=True)):
        words = fn.binary("lshr", one, 16) | two
        fn.store(fn.cast(out + fn.index(part_bytes) * part, I32), words)


def _emit_turn(module: Module, parts: int) -> Function:
    """Emit `turn_words(words, out)`: write the transpose of the square of 16 x 16 words of each part as a tile."""
    with module.function("turn_words", [("words", BYTES), ("out", BYTES)], noalias=("words", "out")) as fn:
        words, out = fn.args
        with fn.range(parts) as part:
            rows = [fn.load(fn.cast(words + part * TILE_BYTES + row * ROW_BYTES, I32), ROWS) for row in range(ROWS)]
            for row, line in enumerate(transpose(fn, rows)):
                fn.store(fn.cast(out + part * (2 * TILE_BYTES) + row * ROW_BYTES, I32), line)
        fn.finish()
    return fn


def _emit_gather(module: Module) -> Function:
    """Emit `gather_square(lines, depth, source, line_step, k_step, out)`: copy `depth` <= 32 elements of each of the
    first 16 of `lines` lines, and pad the copy to 16 x 32 with zeros.
    """
    params = [("lines", I64), ("depth", I64), ("source", FLOATS), ("line_step", I64), ("k_step", I64), ("out", FLOATS)]
    with module.function("gather_square", params, noalias=("source", "out")) as fn:
        lines, depth, source, line_step, k_step, out = fn.args
        with fn.range(0, ROWS * DEPTH, ROWS) as at:
            fn.store(out + at, fn.constant(0.0, vector(F32, ROWS)))
        with fn.range(fn.minimum(lines, ROWS)) as line, fn.range(depth) as k:
            fn.store(out + line * DEPTH + k, fn.load(source + line_step * line + k_step * k))
        fn.finish()
    return fn


class Extremes:
    """Largest and least magnitudes, by lane, in registers while a square is split; `save` writes them to `memory`."""

    def __init__(self, fn: Function, memory: Value) -> None:
        self._fn, self._memory = fn, memory
        self._largest = fn.var(_WORDS, fn.load(memory, ROWS))
        self._least = fn.var(_WORDS, fn.load(memory + ROWS, ROWS))

    def watch(self, vectors: Sequence[Value]) -> None:
        """Include the elements of some vectors of float32 bits.

        The least magnitude is that of bits minus 1: zeros wrap to the largest integer and are ignored.
        """
        for bits in vectors:
            magnitude = bits & _MAGNITUDE
            self._largest.set(_integers(self._fn, "smax", self._largest.read(), magnitude))
            lower = self._fn.emit(_WORDS, f"add {_WORDS} {magnitude.name}, {self._fn.constant(-1, _WORDS).name}")
            self._least.set(_integers(self._fn, "umin", self._least.read(), lower))

    def save(self) -> None:
        self._fn.store(self._memory, self._largest.read())
        self._fn.store(self._memory + ROWS, self._least.read())


def _parts(fn: Function, bits: Value, parts: int) -> list[Value]:
    """Emit the split of a vector of float32 bits into `parts` parts, and return them.

    They are float32 bits, too; the lower 16 bits of each part are 0.
    """
    floats = vector(F32, ROWS)
    found = []
    for part in range(parts):
        if part == 2:
            # The remainder has 8 bits.
            found.append(bits)
            break
        rounded = fn.emit(_WORDS, f"add {_WORDS} {bits.name}, {fn.constant(_HALF_UNIT, _WORDS).name}")
        found.append(rounded & _UPPER)
        bits = _bits(fn, _as(fn, bits, floats) - _as(fn, found[-1], floats))
    return found


def _bits(fn: Function, value: Value) -> Value:
    return _as(fn, value, _WORDS)


def _as(fn: Function, value: Value, type_: Type) -> Value:
    """Return the same bits as a value of another type."""
    return fn.emit(type_, f"bitcast {value.type} {value.name} to {type_}")


def _integers(fn: Function, word: str, left: Value, right: Value) -> Value:
    name = f"llvm.{word}.v{ROWS}i32"
    fn.declare(name, f"declare {_WORDS} @{name}({_WORDS}, {_WORDS})")
    return fn.emit(_WORDS, f"call {_WORDS} @{name}({_WORDS} {left.name}, {_WORDS} {right.name})")


def _over_lanes(fn: Function, word: str, value: Value) -> Value:
    name = f"llvm.vector.reduce.{word}.v{ROWS}i32"
    fn.declare(name, f"declare i32 @{name}({_WORDS})")
    return fn.emit(I32, f"call i32 @{name}({_WORDS} {value.name})")
