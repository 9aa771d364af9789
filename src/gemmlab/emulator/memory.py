"""Loads and stores of a warp: translation, bounds, alignment, what was never written, and what is counted.

The addresses of a warp relative to its first lane's usually repeat from one execution of an instruction to the next;
then extent, alignment and counts come from the memo, and one word for all lanes or consecutive words move as vectors.
Anything out of the ordinary goes lane by lane through `locate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmlab.codegen.function import Function
from gemmlab.codegen.module import Module
from gemmlab.codegen.types import I8, I32, I64, Type, pointer, vector
from gemmlab.codegen.values import Value, Var
from gemmlab.emulator.lanes import Lanes, lane_mask
from gemmlab.emulator.layout import LANES, Block, Insn, Kind, Launch, Space, Warp
from gemmlab.emulator.memo import BROADCAST, CONTIGUOUS, Memo
from gemmlab.emulator.raw import Raw

SPACES = {"global": Space.GLOBAL, "shared": Space.SHARED, "local": Space.LOCAL}
VECTOR_WIDTHS = (4, 8, 16)
STORE = 256
PENDING = 0x7F
"""Validity of a byte that an asynchronous copy has yet to bring."""

ACCESS = (
    ("warp", pointer(I8)),
    ("insn", pointer(I8)),
    ("execute", I32),
    ("addresses", pointer(I64)),
    ("words", pointer(I32)),
    ("key", I32),
)
"""`addresses`: 32 i64; `words`: rows of 32 i32, read or written; `key`: width in bytes, plus `STORE`."""
COUNT = (*ACCESS[:4], ACCESS[5])
LOCATE = (("warp", pointer(I8)), ("insn", pointer(I8)), ("lane", I64), ("address", I64), ("key", I32))


@dataclass(frozen=True, slots=True)
class Place:
    """Where an address lies on the host, where its validity does (0: all valid), and whether it is there at all."""

    host: Value
    valid: Value
    inside: Value


def translate(fn: Function, warp: Raw, space: str, address: Value, low: Value, high: Value, lane: Value) -> Place:
    """The place of `address`; `inside` when `low .. high` (bytes relative to it) lies in one allocation."""
    if space == "global":
        launch = Raw(fn, fn.cast(warp.load(Warp.LAUNCH, I64), I8))
        number = Lanes(address) >> Launch.SLOT_BITS
        known = number.ult(Launch.SLOT_COUNT)
        slot = Raw(fn, fn.cast(launch.load(Launch.SLOTS, I64), I8) + known.select(number, 0).value * Launch.SLOT_SIZE)
        offset = address - number.value * (1 << Launch.SLOT_BITS)
        size, host, valid = (slot.load(8 * field, I64) for field in range(3))
        inside = Lanes(offset + low).ge(0) & Lanes(offset + high).le(Lanes(size)) & known
        return Place(
            host + offset, Lanes(valid).eq(0).select(Lanes(valid), valid_at(valid, offset)).value, inside.value
        )
    if space == "shared":
        block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
        first, last = block.load(Block.SHARED_LOW, I64), block.load(Block.SHARED_HIGH, I64)
        host, valid = block.load(Block.SHARED, I64), block.load(Block.VALID, I64)
        inside = Lanes(address + low).ge(Lanes(first)) & Lanes(address + high).le(Lanes(last))
        return Place(host + address, valid + address, inside.value)
    size = warp.load(Warp.LOCAL_BYTES, I64)
    inside = Lanes(address + low).ge(0) & Lanes(address + high).le(Lanes(size))
    offset = address + lane * size
    return Place(warp.load(Warp.LOCAL, I64) + offset, warp.load(Warp.LOCAL_VALID, I64) + offset, inside.value)


def valid_at(base: Value, offset: Value) -> Lanes:
    """The validity bytes of an allocation's offset."""
    return Lanes(base + offset)


def emit_locate(fn: Function, module: Module, space: str) -> None:
    """Body of `locate_SPACE(warp, insn, lane, address, key)`: host address, or 0 after noting what is wrong."""
    warp_ptr, insn, lane, address, key = fn.args
    warp = Raw(fn, warp_ptr)
    width = fn.zero_extend((Lanes(key) & 255).value)
    place = translate(fn, warp, space, address, fn.constant(0, I64), width, lane)
    host = fn.var(I64, place.host)
    extra = fn.zero_extend(key) + SPACES[space] * 65536

    def complain(kind: int) -> None:
        host.set(0)
        fn.call(module["note"], warp_ptr, insn, kind, lane, address, extra, -1)

    with fn.choose(place.inside) as choice:
        with choice.yes(), fn.when((Lanes(address) & Lanes(width - 1)).ne(0).value):
            complain(Kind.MISALIGNED)
        with choice.no():
            complain(Kind.OUT_OF_BOUNDS)
    fn.finish(host.read())


@dataclass(frozen=True, slots=True)
class Pattern:
    """A warp's addresses relative to the first lane's, and whether they are too far apart for 32 bits."""

    base: Value
    relative: Lanes
    far: Lanes


def counted(fn: Function, module: Module, space: str) -> Pattern:
    """Recognise or analyse the pattern of an access, and count it. See `ACCESS` for the arguments this reads."""
    insn_ptr, execute, addresses, key = fn.args[1], fn.args[2], fn.args[3], fn.args[-1]
    insn = Raw(fn, insn_ptr)
    first = fn.zero_extend(Lanes(execute).call_flag("cttz", flag=True).value)
    base = addresses[first]
    distance = lane_mask(execute).select(Lanes(fn.load(addresses, LANES)) - Lanes(base).splat(LANES), 0)
    relative = distance.trunc("i32")
    phase = Lanes(base).trunc("i32") & 31
    remembered = (
        Lanes(insn.load(Memo.EXEC)).eq(Lanes(execute))
        & Lanes(insn.load(Memo.PHASE)).eq(phase)
        & Lanes(insn.load(Memo.KEY)).eq(Lanes(key))
        & relative.ne(Lanes(insn.load(Insn.PATTERN, I32, LANES))).mask_bits().eq(0)
    )
    with fn.when((~remembered).value):
        row = fn.scratch(I32, LANES)
        fn.store(row, relative.value)
        fn.call(module["analyse"], insn_ptr, row, execute, phase.value, key)
    if space == "shared":
        insn.add(Insn.WAVEFRONTS, fn.zero_extend(insn.load(Memo.WAVEFRONTS)))
        insn.add(Insn.IDEAL, fn.zero_extend(insn.load(Memo.IDEAL)))
        insn.add(Insn.CONFLICTS, fn.zero_extend(insn.load(Memo.CONFLICTS)))
    else:
        insn.add(Insn.SECTORS, fn.zero_extend(insn.load(Memo.SECTORS)))
        if space == "global":
            fn.call(module["touch"], fn.args[0], insn_ptr, execute, addresses)
    launch = Raw(fn, fn.cast(Raw(fn, fn.args[0]).load(Warp.LAUNCH, I64), I8))
    with fn.when(launch.load(Launch.TRACE, I64).differs(0)):
        fn.call(module["trace_access"], fn.args[0], execute, addresses, key, SPACES[space])
    return Pattern(base, relative, relative.sext("i64").ne(distance).mask_bits().ne(0))


TOUCH = ACCESS[:4]


def emit_touch(fn: Function) -> None:
    """Body of `touch(warp, insn, execute, addresses)`: count the sectors new to this wave of blocks."""
    warp, insn, execute, addresses = Raw(fn, fn.args[0]), Raw(fn, fn.args[1]), fn.args[2], fn.args[3]
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    launch = Raw(fn, fn.cast(warp.load(Warp.LAUNCH, I64), I8))
    wave = fn.convert(block.load(Block.WAVE, I64), I8)
    slots = fn.cast(launch.load(Launch.SLOTS, I64), I8)
    fresh = fn.var(I64, 0)
    with fn.range(LANES) as lane, fn.when(_bit_of(fn, execute, lane)):
        address = Lanes(addresses[lane])
        number = address >> Launch.SLOT_BITS
        known = number.ult(Launch.SLOT_COUNT)
        slot = Raw(fn, slots + known.select(number, 0).value * Launch.SLOT_SIZE)
        offset = address & ((1 << Launch.SLOT_BITS) - 1)
        with fn.when((known & offset.ult(Lanes(slot.load(0, I64)))).value):
            sector = fn.cast(slot.load(24, I64), I8) + (offset >> 5).value
            with fn.when(fn.load(sector).differs(wave)):
                fn.store(sector, wave)
                fresh += 1
    insn.add(Insn.FRESH, fresh.read())
    fn.finish()


def emit_count(fn: Function, module: Module, space: str) -> None:
    """Body of `count_SPACE(warp, insn, execute, addresses, key)`: for what moves data in its own way."""
    execute = fn.args[2]
    with fn.when(execute.differs(0)):
        counted(fn, module, space)
    fn.finish()


def emit_access(fn: Function, module: Module, space: str, *, store: bool) -> None:
    """Body of `load_SPACE` and `store_SPACE`: the lanes served, as bits. See `ACCESS`."""
    warp_ptr, insn_ptr, execute, _addresses, words, key = fn.args
    warp, insn = Raw(fn, warp_ptr), Raw(fn, insn_ptr)
    pattern = counted(fn, module, space)
    insn.add(Insn.REQUESTS, 1)
    if space == "shared":
        _check_races(fn, module, warp)
    low, highest = insn.load(Memo.LOWEST, I64), insn.load(Memo.HIGHEST, I64)
    width = Lanes(key) & 255
    place = translate(fn, warp, space, pattern.base, low, highest + fn.zero_extend(width.value), fn.constant(0, I64))
    ordinary = Lanes(place.inside) & ~pattern.far & Lanes(insn.load(Memo.MISALIGNED)).eq(0) & width.uge(4)
    if space == "local":
        ordinary = ordinary & ordinary.like(0)
    done = fn.var(I32, 0)
    with fn.when(ordinary.value):
        _fast(Move(fn, insn, place, pattern.relative, lane_mask(execute), words, width, done), store=store)
    with fn.when(Lanes(done.read()).eq(0).value):
        name = f"slow_{'store' if store else 'load'}_{space}"
        done.set(fn.call(module[name], *fn.args))
    if store and space != "local":
        block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
        block.add(Block.EPOCH, 1)
    fn.finish(done.read())


def _check_races(fn: Function, module: Module, warp: Raw) -> None:
    block = Raw(fn, fn.cast(warp.load(Warp.BLOCK, I64), I8))
    with fn.when(block.load(Block.RACES, I64).differs(0)):
        warp_ptr, insn, execute, addresses, words, key = fn.args
        fn.call(module["race"], warp_ptr, insn, execute, addresses, words, key)


@dataclass(frozen=True, slots=True)
class Move:
    """What the vector paths of an access have in common; `done` stays 0 where validity fails."""

    fn: Function
    insn: Raw
    place: Place
    relative: Lanes
    on: Lanes
    words: Value
    width: Lanes
    done: object


def _fast(move: Move, *, store: bool) -> None:
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


# `_contiguous` and `_scattered` serve loads and stores: which one, the function's name says.
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
        seen = Lanes(_unaligned(fn, valid, lanes))
        bits = fn.emit(Type(f"i{lanes}"), f"bitcast <{lanes} x i1> {seen.ne(-1).value.name} to i{lanes}")
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
            seen = Lanes(_gather(fn, _spots_on(fn, valid, 4 * word), move.on))
            good = good & (seen.ne(-1) & move.on).mask_bits().eq(0)
    with fn.when(good.value):
        for word, row in enumerate(rows):
            fn.store(move.words + word * LANES, row)
        _serve(move)


def fn_pointer(fn: Function, address: Value) -> Value:
    """An integer address as a pointer to i32."""
    return fn.cast(address, I32)


def _unaligned(fn: Function, address: Value, lanes: int) -> Value:
    return fn.load(address, lanes)


def _interleave(fn: Function, rows: list[Value]) -> Value:
    """Rows of 32 lanes as one vector in which the words of a lane are neighbours."""
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


def emit_slow(fn: Function, module: Module, space: str, *, store: bool) -> None:
    """Body of `slow_load_SPACE` and `slow_store_SPACE`: lane by lane, byte by byte; the lanes served."""
    warp_ptr, insn, execute, addresses, words, key = fn.args
    warp = Raw(fn, warp_ptr)
    done = fn.var(I32, 0)
    width = fn.zero_extend((Lanes(key) & 255).value)
    extra = fn.zero_extend(key) + SPACES[space] * 65536
    with fn.range(LANES) as lane, fn.when(_bit_of(fn, execute, lane)):
        if not store:
            with fn.range(fn.ceil_div(width, 4)) as word:
                fn.store(words + (word * LANES + lane), fn.constant(0, I32))
        address = addresses[lane]
        host = fn.call(module[f"locate_{space}"], warp_ptr, insn, lane, address, key)
        with fn.when(host.differs(0)):
            place = translate(fn, warp, space, address, fn.constant(0, I64), width, lane)
            source, valid = fn.cast(place.host, I8), place.valid
            worst = fn.var(I8, -1)
            with fn.range(width) as byte:
                mine = fn.cast(words, I8) + ((byte // 4 * LANES + lane) * 4 + byte % 4)
                if store:
                    fn.store(source + byte, fn.load(mine))
                else:
                    fn.store(mine, fn.load(source + byte))
                with fn.when(valid.differs(0)):
                    state = fn.cast(valid, I8) + byte
                    if store:
                        fn.store(state, fn.constant(-1, I8))
                    else:
                        seen = fn.load(state)
                        with fn.when(seen.differs(-1)):
                            worst.set(seen)
            if not store:
                if space == "shared":
                    _poison(fn, valid, width, words + lane, worst)
                with fn.when(worst.read().differs(-1)):
                    late = fn.select(worst.read().equals(PENDING), Kind.ASYNC, Kind.UNWRITTEN)
                    fn.call(module["note"], warp_ptr, insn, late, lane, address, extra, -1)
            done.set(Lanes(done.read()).__or__(Lanes(_bit_at(fn, lane))).value)
    fn.finish(execute if not store else done.read())


POISON = 0x7FFFDEAD
"""A NaN: what a wide load gets for words that nothing has written, where others of its words were."""


def _poison(fn: Function, valid: Value, width: Value, words: Value, worst: Var) -> None:
    """Compilers widen loads over padding that is never used: no hazard, but what such a read brings must not pass.

    Only where all words of the access are unwritten does `worst` stay as it is.
    """
    states = fn.cast(valid, I32)
    count = width // 4
    written = fn.var(I64, 0)
    with fn.range(count) as word:
        written += fn.zero_extend(fn.load(states + word).equals(-1))
    with fn.when((Lanes(written.read()).gt(0) & Lanes(worst.read()).ne(PENDING)).value):
        with fn.range(count) as word, fn.when(fn.load(states + word).differs(-1)):
            fn.store(words + word * LANES, fn.constant(POISON, I32))
        worst.set(-1)


def _bit_of(fn: Function, bits: Value, lane: Value) -> Value:
    return ((Lanes(bits) >> Lanes(fn.convert(lane, I32))) & 1).ne(0).value


def _bit_at(fn: Function, lane: Value) -> Value:
    return (Lanes(fn.constant(1, I32)) << Lanes(fn.convert(lane, I32))).value
