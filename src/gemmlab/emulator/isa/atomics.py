"""Atomic operations on global, shared and generic addresses: lane by lane, the lowest first."""

from __future__ import annotations

from gemmlab.emulator.async_calls import Operation, request
from gemmlab.emulator.form import Form, join
from gemmlab.emulator.isa.access import addresses
from gemmlab.emulator.isa.atomic_places import count_atomic, place_of
from gemmlab.emulator.isa.atomic_values import FLOATS, combined, float_combined
from gemmlab.emulator.isa.atomic_vectors import HINTS, VECTORS, vector_atomic
from gemmlab.emulator.isa.each_lane import each_lane, row
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes, lane_mask
from gemmlab.emulator.layout import LANES, Block
from gemmlab.ir.types import I32, I64

OPERATIONS = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "CAS", "CAST")
KINDS = {"64", "S32", "S64", "U32", *FLOATS}


@opcode("ATOM", "ATOMG", "ATOMS", "RED", "REDG")
def atomic(x: Form) -> None:
    """Read, combine and write. The result is the old value; for CAST it is 1 if the exchange was made, else 0."""
    if x.has("ARRIVE"):
        arrive_word(x)
        return
    vector = x.one_of(*VECTORS)
    if vector:
        vector_atomic(x, vector)
        return
    name = x.one_of(*OPERATIONS)
    counting = x.has("POPC")  # ATOMS.POPC.INC adds one for each lane; a plain INC has a maximum
    known = HINTS | {name} | ({"POPC", "32"} if counting else KINDS)
    floats = x.one_of(*FLOATS)
    if not name or (floats and name not in FLOATS[floats]) or set(x.modifiers) - known:
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
        count_atomic(x, where, 8 if wide else 4, x.exec_bits, twice=name == "CAS", joined=counting)
    with each_lane(x) as lane:
        place = place_of(x, spots[lane], lane, 8 if wide else 4, generic_float=generic_float)
        with x.fn.when(place.inside):
            cell = x.fn.cast(place.host, I64 if wide else I32)
            before = Lanes(x.fn.load(cell))
            old[lane] = before.value
            values = [Lanes(each[lane]) for each in rows]
            if floats:
                after = float_combined(name, floats, before, values[0], flush=x.has("FTZ"))
            else:
                after = combined("ADD" if counting else name, before, values, signed=x.has("S32", "S64"))
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
        count_atomic(x, where, 8 if wide else 4, served_now.read(), twice=True)
    x.block.add(Block.EPOCH, changed.read())
    if d is not None:
        d.set(Lanes(x.fn.load(old, LANES)))
    for result in results:
        result.set(lane_mask(served.read()))


def arrive_word(x: Form) -> None:
    """Emit an arrival at an mbarrier of sm_80; the result is the mbarrier's word before the arrival."""
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
