"""Atomic operations on vectors in global memory (sm_90): sums of two or four float32; sums, least and greatest of four
or eight 16-bit numbers.

Each element is combined by itself, with the rounding and the denormals of one number: PTX guarantees no more than that
each element is atomic. A vector is aligned to its size.
"""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.access import addresses
from gemmlab.emulator.isa.atomic_places import checked_place, count_atomic
from gemmlab.emulator.isa.atomic_values import FLOATS, float_combined
from gemmlab.emulator.isa.each_lane import each_lane, row
from gemmlab.emulator.lanes import Lanes, lane_mask
from gemmlab.emulator.layout import LANES, Block
from gemmlab.ir.types import I32, I64

HINTS = {"E", "STRONG", "WEAK", "GPU", "SM", "SYS", "CTA", "SPIN", "FTZ", "RN", "EF", "EL", "LU", "NA", "PRIVATE"}
"""Modifiers of atomic operations that do not change the result here, except `FTZ`: it makes denormals of F32 zeros."""
VECTORS = {
    "F32x2": ("F32", 2), "F32x4": ("F32", 4), "F16x4": ("F16x2", 2), "F16x8": ("F16x2", 4), "BF16x4": ("BF16x2", 2),
    "BF16x8": ("BF16x2", 4),
}  # fmt: skip
"""Type of a vector -> type of one of its 32-bit words, and their number."""


def vector_atomic(x: Form, vector: str) -> None:
    """Emit the combination of each lane's vector with memory. The result is the old value."""
    kind, count = VECTORS[vector]
    name = x.one_of(*FLOATS[kind])
    if not name or set(x.modifiers) - HINTS - {name, vector}:
        raise x.refuse()
    results = x.dest_predicates(1)
    d = None if x.instruction.opcode in {"RED", "REDG"} else x.dest()
    where = addresses(x, "global")
    spots, rows = row(x, where), [row(x, word) for word in x.words(count)]
    old = [x.fn.scratch(I32, LANES) for _ in rows]
    served, changed = x.fn.var(I32, 0), x.fn.var(I64, 0)
    count_atomic(x, where, 4 * count, x.exec_bits, twice=False)
    with each_lane(x) as lane:
        # PTX allows vectors in global memory alone, so an address in another space is out of bounds.
        place = checked_place(x, "global", spots[lane], lane, 4 * count)
        with x.fn.when(place.inside):
            for part in range(count):
                cell = x.fn.cast(place.host, I32) + part
                before = Lanes(x.fn.load(cell))
                old[part][lane] = before.value
                after = float_combined(name, kind, before, Lanes(rows[part][lane]), flush=x.has("FTZ"))
                x.fn.store(cell, after.value)
                changed.set((Lanes(changed.read()) | after.ne(before).zext("i64")).value)
                with x.fn.when(place.valid.differs(0)):
                    x.fn.store(x.fn.cast(place.valid, I32) + part, -1)
            bit = Lanes(x.fn.constant(1, I32)) << Lanes(x.fn.convert(lane, I32))
            served.set((Lanes(served.read()) | bit).value)
    x.block.add(Block.EPOCH, changed.read())
    if d is not None:
        d.set([Lanes(x.fn.load(words, LANES)) for words in old])
    for result in results:
        result.set(lane_mask(served.read()))
