"""Accesses of a warp as vectors: broadcast, contiguous words, or a gather or scatter; 4, 8 or 16 bytes a lane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmlab.emulator.address_space import Place
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.memo import BROADCAST, CONTIGUOUS, Memo
from gemmlab.emulator.raw import Raw
from gemmlab.ir.function import Function
from gemmlab.ir.types import I8, I32, Type, vector
from gemmlab.ir.values import Value

VECTOR_WIDTHS = (4, 8, 16)


@dataclass(frozen=True, slots=True)
class Move:
    """The state that the vector paths of an access share. `on`: lanes that execute; `width`: bytes a lane.

    `done` is an i32 variable, at first 0. A path that makes the access sets it to the mask of the lanes that execute.
    """

    fn: Function
    insn: Raw
    place: Place
    relative: Lanes
    on: Lanes
    words: Value
    width: Lanes
    done: object


def serve_whole(move: Move, *, store: bool) -> None:
    """Emit the access by the fastest path for its pattern. The code does nothing for another width than 4, 8 or 16
    bytes, and for a load of an unwritten or pending byte.
    """
    fn = move.fn
    shape = Lanes(move.insn.load(Memo.CLASS))
    checked = Lanes(move.place.valid).ne(0)
    for bytes_ in VECTOR_WIDTHS:
        count = bytes_ // 4
        paths: list[tuple[Lanes, Callable[[Move, int, bool], None]]] = [
            (shape.eq(CONTIGUOUS), _contiguous),
            (shape.ne(CONTIGUOUS), _scattered),
        ]
        if not store:
            paths[1] = (shape.ne(CONTIGUOUS) & shape.ne(BROADCAST), _scattered)
            paths.append((shape.eq(BROADCAST), _broadcast))
        for chosen, path in paths:
            with fn.when((move.width.eq(bytes_) & chosen).value), fn.choose(checked.value) as choice:
                with choice.yes():
                    path(move, count, True)
                with choice.no():
                    path(move, count, False)


# `_contiguous` and `_scattered` emit loads and stores; the name of the emitted function decides which.
def _is_store(fn: Function) -> bool:
    return fn.name.startswith("store")


def _serve(move: Move) -> None:
    move.done.set(move.fn.args[2])  # type: ignore[attr-defined]


def _broadcast(move: Move, count: int, checked: bool) -> None:
    fn, host = move.fn, fn_pointer(move.fn, move.place.host)
    good = Lanes(fn.constant(1, Type("i1")))
    if checked:
        valid = fn_pointer(fn, move.place.valid)
        for word in range(count):
            good = good & Lanes(valid[word]).eq(-1)
    with fn.when(good.value):
        for word in range(count):
            fn.store(move.words + word * LANES, Lanes(host[word]).splat(LANES).value)
        _serve(move)


def _contiguous(move: Move, count: int, checked: bool) -> None:
    fn, lanes = move.fn, LANES * count
    host, valid = fn_pointer(fn, move.place.host), fn_pointer(fn, move.place.valid)
    if _is_store(fn):
        rows = [fn.load(move.words + word * LANES, LANES) for word in range(count)]
        fn.store(host, _interleave(fn, rows))
        if checked:
            fn.store(valid, fn.constant(-1, vector(I32, lanes)))
        _serve(move)
        return
    data = _unaligned(fn, host, lanes)
    good = Lanes(fn.constant(1, Type("i1")))
    if checked:
        validity = Lanes(_unaligned(fn, valid, lanes))
        bits = fn.emit(Type(f"i{lanes}"), f"bitcast <{lanes} x i1> {validity.ne(-1).value.name} to i{lanes}")
        good = Lanes(fn.emit(Type("i1"), f"icmp eq i{lanes} {bits.name}, 0"))
    with fn.when(good.value):
        for word in range(count):
            part = fn.shuffle(data, data, range(word, lanes, count)) if count > 1 else data
            fn.store(move.words + word * LANES, part)
        _serve(move)


def _scattered(move: Move, count: int, checked: bool) -> None:
    fn = move.fn
    host, valid = _spots(fn, move.place.host, move.relative), _spots(fn, move.place.valid, move.relative)
    if _is_store(fn):
        for word in range(count):
            value = fn.load(move.words + word * LANES, LANES)
            _scatter(fn, value, _spots_on(fn, host, 4 * word), move.on)
            if checked:
                _scatter(fn, fn.constant(-1, value.type), _spots_on(fn, valid, 4 * word), move.on)
        _serve(move)
        return
    rows = [_gather(fn, _spots_on(fn, host, 4 * word), move.on) for word in range(count)]
    good = Lanes(fn.constant(1, Type("i1")))
    if checked:
        for word in range(count):
            validity = Lanes(_gather(fn, _spots_on(fn, valid, 4 * word), move.on))
            good = good & (validity.ne(-1) & move.on).mask_bits().eq(0)
    with fn.when(good.value):
        for word, row in enumerate(rows):
            fn.store(move.words + word * LANES, row)
        _serve(move)


def fn_pointer(fn: Function, address: Value) -> Value:
    """Return an integer address as a pointer to i32."""
    return fn.cast(address, I32)


def _unaligned(fn: Function, address: Value, lanes: int) -> Value:
    return fn.load(address, lanes)


def _interleave(fn: Function, rows: list[Value]) -> Value:
    """Return rows of 32 lanes as one vector in which the words of each lane are adjacent."""
    while len(rows) > 1:
        half = len(rows) // 2
        rows = [_zip(fn, rows[index], rows[index + half]) for index in range(half)]
    return rows[0]


def _zip(fn: Function, left: Value, right: Value) -> Value:
    lanes = left.type.lanes
    return fn.shuffle(left, right, [half * lanes + index for index in range(lanes) for half in (0, 1)])


POINTERS = Type(f"<{LANES} x ptr>")


def _spots(fn: Function, base: Value, relative: Lanes) -> Value:
    pointer_ = fn.cast(base, I8)
    return fn.emit(POINTERS, f"getelementptr i8, ptr {pointer_.name}, <{LANES} x i32> {relative.value.name}")


def _spots_on(fn: Function, spots: Value, offset: int) -> Value:
    return fn.emit(POINTERS, f"getelementptr i8, {POINTERS} {spots.name}, i64 {offset}") if offset else spots


def _gather(fn: Function, spots: Value, on: Lanes) -> Value:
    name, type_ = f"llvm.masked.gather.v{LANES}i32.v{LANES}p0", vector(I32, LANES)
    fn.declare(name, f"declare {type_} @{name}({POINTERS}, i32, {on.value.type}, {type_})")
    listing = f"{POINTERS} {spots.name}, i32 4, {on.value.type} {on.value.name}, {type_} zeroinitializer"
    return fn.emit(type_, f"call {type_} @{name}({listing})")


def _scatter(fn: Function, value: Value, spots: Value, on: Lanes) -> None:
    name = f"llvm.masked.scatter.v{LANES}i32.v{LANES}p0"
    fn.declare(name, f"declare void @{name}({value.type}, {POINTERS}, i32, {on.value.type})")
    listing = f"{value.type} {value.name}, {POINTERS} {spots.name}, i32 4, {on.value.type} {on.value.name}"
    fn.line(f"call void @{name}({listing})")
