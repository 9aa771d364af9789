"""Atomic operations on global, shared and generic addresses: lane by lane, the lowest first."""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.emulator.address_space import COUNT, EACH_LANE, STORE, Place, translate
from gemmlab.emulator.async_calls import Operation, request
from gemmlab.emulator.cluster_races import ATOMIC, CLUSTER_RACE
from gemmlab.emulator.form import Form, join
from gemmlab.emulator.global_races import GLOBAL_RACE
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.emulator.isa.access import addresses, by_space
from gemmlab.emulator.isa.each_lane import each_lane, locate, row
from gemmlab.emulator.isa.halves import to_bfloat
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes, lane_mask
from gemmlab.emulator.launch_layout import LOCAL_WINDOW, SHARED_WINDOW
from gemmlab.emulator.layout import LANES, Block
from gemmlab.emulator.small_floats import bfloat_of, half_of, pack_halves
from gemmlab.ir.types import I32, I64, VOID
from gemmlab.ir.values import Value

OPERATIONS = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "CAS", "CAST")
HINTS = {"E", "STRONG", "WEAK", "GPU", "SM", "SYS", "CTA", "SPIN", "FTZ", "RN", "EF", "EL", "LU", "NA", "PRIVATE"}
KINDS = {"64", "S32", "S64", "U32", "F32", "F64", "F16x2", "BF16x2"}


@opcode("ATOM", "ATOMG", "ATOMS", "RED", "REDG")
def atomic(x: Form) -> None:
    """Read, combine and write. The result is the old value; for CAST it is 1 if the exchange was made, else 0."""
    if x.has("ARRIVE"):
        arrive_word(x)
        return
    name = x.one_of(*OPERATIONS)
    counting = x.has("POPC")  # ATOMS.POPC.INC adds one for each lane; a plain INC has a maximum
    if not name or set(x.modifiers) - HINTS - KINDS - {name} - ({"POPC", "32"} if counting else set()):
        raise x.refuse()
    results = x.dest_predicates(1)
    d = None if x.instruction.opcode in {"RED", "REDG"} else x.dest()
    where = addresses(x, "shared" if x.instruction.opcode == "ATOMS" else "global")
    wide = x.has("64", "S64", "F64")
    operands = [x.constant(1) if counting else _operand(x, wide=wide)]
    if name in {"CAS", "CAST"}:
        operands.append(_operand(x, wide=wide))
    spots, rows = row(x, where), [row(x, operand) for operand in operands]
    old = x.fn.scratch(I64 if wide else I32, LANES)
    generic_float = x.instruction.opcode == "ATOM" and x.has("F32", "F64")
    served, changed, taken = x.fn.var(I32, 0), x.fn.var(I64, 0), x.fn.var(I32, 0)
    by_bank = name == "CAST" and x.instruction.opcode == "ATOMS"
    served_now = x.fn.var(I32, 0)
    if not by_bank:
        _count(x, where, 8 if wide else 4, x.exec_bits, twice=name == "CAS", joined=counting)
    with each_lane(x) as lane:
        place = _place(x, spots[lane], lane, 8 if wide else 4, generic_float=generic_float)
        with x.fn.when(place.inside):
            cell = x.fn.cast(place.host, I64 if wide else I32)
            before = Lanes(x.fn.load(cell))
            old[lane] = before.value
            values = [Lanes(each[lane]) for each in rows]
            after = _combine(x, "ADD" if counting else name, before, values)
            if by_bank:
                # The hardware serves one lane of each bank; the others try again.
                bank = Lanes(x.fn.constant(3 if wide else 1, I32)) << (Lanes(spots[lane]).trunc("i32") >> 2 & 31)
                turn = (Lanes(taken.read()) & bank).eq(0)
                taken.set((Lanes(taken.read()) | bank).value)
                after = turn.select(after, before)
                place_bit = Lanes(x.fn.constant(1, I32)) << Lanes(x.fn.convert(lane, I32))
                served_now.set((Lanes(served_now.read()) | turn.select(place_bit, 0)).value)
            x.fn.store(cell, after.value)
            # Only changes count: a lane that tries to take a lock and fails counts as spinning.
            changed.set((Lanes(changed.read()) | after.ne(before).zext("i64")).value)
            if name == "CAST":
                done = before.eq(values[0]) & turn if by_bank else before.eq(values[0])
                old[lane] = done.zext(before.kind).value
            with x.fn.when(place.valid.differs(0)):
                x.fn.store(x.fn.cast(place.valid, I64 if wide else I32), -1)
            bit = Lanes(x.fn.constant(1, I32)) << Lanes(x.fn.convert(lane, I32))
            served.set((Lanes(served.read()) | bit).value)
    if by_bank:
        _count(x, where, 8 if wide else 4, served_now.read(), twice=True)
    x.block.add(Block.EPOCH, changed.read())
    if d is not None:
        d.set(Lanes(x.fn.load(old, LANES)))
    for result in results:
        result.set(lane_mask(served.read()))


def arrive_word(x: Form) -> None:
    """Arrive at an mbarrier of sm_80; the result is the mbarrier's word before the arrival."""
    x.allow("ARRIVE", "64")
    d = x.dest()
    status, rows = request(x, Operation.ARRIVE_WORD, addresses(x, "shared"))
    d.set(Lanes(x.fn.load(rows, LANES)))
    x.status(status)


def _operand(x: Form, *, wide: bool) -> Lanes:
    if not wide:
        return x.source().splat(LANES)
    low, high = x.words(2)
    return join(low, high).splat(LANES)


def _count(x: Form, where: Lanes, width: int, lanes: Value, *, twice: bool, joined: bool = False) -> None:
    """Count a request, and sectors or wavefronts of `lanes`. Check for races, too.

    Sectors are those of a store. In shared memory each lane of a bank takes a wavefront; with `joined` those with the
    same word share one. With `twice` wavefronts count double: a compare-and-swap sends two values a lane.
    """
    x.insn.add(Insn.REQUESTS, 1)
    key = width + STORE
    in_shared = key if joined else key + EACH_LANE
    nothing = x.fn.scratch(I32, LANES)
    if x.instruction.opcode == "ATOMS":
        spots = row(x, where)
        fields = (Insn.WAVEFRONTS, Insn.IDEAL, Insn.CONFLICTS) if twice else ()
        before = [Lanes(x.insn.load(field, I64)) for field in fields]
        x.service("count_shared", VOID, COUNT, lanes, spots, in_shared)
        for field, old in zip(fields, before, strict=True):
            x.insn.add(field, (Lanes(x.insn.load(field, I64)) - old).value)
        _race_in_cluster(x, lanes, spots, nothing, key)
        return
    parts = [("global", lanes, where)]
    if x.instruction.opcode == "ATOM":
        parts = [(space, lanes.value, short) for space, lanes, short in by_space(x, where)]
    for space, some, short in parts:
        if space == "local":
            continue
        spots = row(x, short)
        x.service(f"count_{space}", VOID, COUNT, some, spots, in_shared if space == "shared" else key)
        if space == "shared":
            _race_in_cluster(x, some, spots, nothing, key)
        if space == "global":
            x.service("global_race", VOID, GLOBAL_RACE, some, spots, nothing, key, 1)


def _race_in_cluster(x: Form, lanes: Value, spots: Value, words: Value, key: int) -> None:
    with x.fn.when(x.block.load(Block.RACES, I64).differs(0)):
        x.service("cluster_race", VOID, CLUSTER_RACE, lanes, spots, words, key, ATOMIC)


def _place(x: Form, address: Value, lane: Value, width: int, *, generic_float: bool) -> Place:
    """Return the checked place of one lane's address, in the opcode's space, or for ATOM in the address's space."""
    fn = x.fn
    if x.instruction.opcode != "ATOM":
        return _checked(x, "shared" if x.instruction.opcode == "ATOMS" else "global", address, lane, width)
    host, valid, inside = fn.var(I64, 0), fn.var(I64, 0), fn.var(I32, 0)
    upper = Lanes(address) >> 32
    spaces = {"shared": upper.eq(SHARED_WINDOW), "global": upper.ne(SHARED_WINDOW) & upper.ne(LOCAL_WINDOW)}
    for space, chosen in spaces.items():
        if space == "shared" and generic_float:
            # The hardware adds floats in global memory only; compiled code has other instructions for other spaces.
            continue
        with fn.when(chosen.value):
            short = (Lanes(address) & 0xFFFFFFFF).value if space == "shared" else address
            place = _checked(x, space, short, lane, width)
            host.set(place.host)
            valid.set(place.valid)
            inside.set(Lanes(place.inside).zext("i32").value)
    return Place(host.read(), valid.read(), inside.read().differs(0))


def _checked(x: Form, space: str, address: Value, lane: Value, width: int) -> Place:
    fn = x.fn
    found = locate(x, space, lane, address, width + STORE)
    size = fn.constant(width, I64)
    place = translate(fn, x.warp, space, address, fn.constant(0, I64), size, lane)
    return Place(place.host, place.valid, found.differs(0))


def _combine(x: Form, name: str, old: Lanes, values: list[Lanes]) -> Lanes:
    new = values[0]
    if x.has("F32", "F64"):
        return _float_add(x, old, new)
    if x.has("F16x2"):
        # A float32 sum has so many bits that rounding it to 16 bits gives the correctly rounded sum.
        return pack_halves(*(half_of(old, part) + half_of(new, part) for part in (0, 1)))
    if x.has("BF16x2"):
        low, high = (to_bfloat(bfloat_of(old, part) + bfloat_of(new, part)) for part in (0, 1))
        return low | (high << 16)
    signed = x.has("S32", "S64")
    simple: dict[str, Callable[[], Lanes]] = {
        "ADD": lambda: old + new,
        "AND": lambda: old & new,
        "OR": lambda: old | new,
        "XOR": lambda: old ^ new,
        "EXCH": lambda: new,
        "MIN": lambda: old.smin(new) if signed else old.umin(new),
        "MAX": lambda: old.smax(new) if signed else old.umax(new),
        "INC": lambda: old.uge(new).select(old.like(0), old + 1),
        "DEC": lambda: (old.eq(0) | old.ugt(new)).select(new, old - 1),
        "CAS": lambda: old.eq(new).select(values[-1], old),
        "CAST": lambda: old.eq(new).select(values[-1], old),
    }
    return simple[name]()


def _float_add(x: Form, old: Lanes, new: Lanes) -> Lanes:
    kind = "f32" if x.has("F32") else "f64"
    flush = x.has("FTZ")
    parts = [_flushed(value.bits(kind)) if flush else value.bits(kind) for value in (old, new)]
    total = parts[0] + parts[1]
    total = _flushed(total) if flush else total
    return total.is_nan().select(_quiet(total), total).bits(old.kind)


def _quiet(total: Lanes) -> Lanes:
    bits = 0x7FFFFFFF if total.kind == "f32" else 0x7FFFFFFFFFFFFFFF
    integer = total.bits("i32" if total.kind == "f32" else "i64")
    return integer.like(bits).bits(total.kind)


def _flushed(value: Lanes) -> Lanes:
    """Return float32 values with denormals replaced by zeros of the same sign."""
    bits = value.bits("i32")
    tiny = (bits & 0x7F800000).eq(0)
    return tiny.select(bits & -0x80000000, bits).bits("f32")
