"""Communication between the lanes of a warp: shuffles, votes, matches, reductions."""

from __future__ import annotations

from gemmlab.emulator.address_space import bit_of
from gemmlab.emulator.events import NOTE
from gemmlab.emulator.form import Form, join
from gemmlab.emulator.instruction_layout import Kind
from gemmlab.emulator.isa.each_lane import row
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes, gather
from gemmlab.emulator.layout import LANES
from gemmlab.emulator.raw import lane_numbers
from gemmlab.ir.types import I32, VOID


@opcode("SHFL")
def shfl(x: Form) -> None:
    """Read the source lane's value; a predicate is true if that lane is in the segment. If not, read the lane's own.

    The third source operand has the clamp, and from bit 8 on the mask of the segment.
    """
    results = x.dest_predicates(1)
    d, a, b, c = x.dest(), x.source(), x.source(), x.source()
    mode = x.needed("IDX", "UP", "DOWN", "BFLY")
    lane = lane_numbers(x.fn)
    b, clamp, segment = b & 31, c & 31, c.lshr(8) & 31
    last = (lane & segment) | (clamp & ~segment)
    source = {
        "IDX": (lane & segment) | (b & ~segment),
        "UP": lane - b,
        "DOWN": lane + b,
        "BFLY": lane ^ b,
    }[mode]
    inside = source.ge(last) if mode == "UP" else source.le(last)
    _note_absent(x, source, inside)
    d.set(permute(x, a, inside.select(source, lane)))
    for result in results:
        result.set(inside)


def _note_absent(x: Form, source: Lanes, inside: Lanes) -> None:
    """Emit code that records an event for each lane that reads from one that does not execute the shuffle.

    The value read is undefined.
    """
    present = (Lanes(x.exec_bits).splat(LANES) >> (source & 31)) & 1
    bits = (present.eq(0) & inside & x.execute).mask_bits()
    with x.fn.when(bits.ne(0).value):
        sources = row(x, (source & 31).zext("i64"))
        with x.fn.range(LANES) as lane, x.fn.when(bit_of(x.fn, bits.value, lane)):
            x.service("note", VOID, NOTE, Kind.SHUFFLE, lane, sources[lane], 0, -1)


def permute(x: Form, value: Lanes, source: Lanes) -> Lanes:
    """Return a row whose lane i is lane `source[i]` of `value`."""
    row = x.fn.scratch(I32, LANES)
    x.fn.store(row, value.value)
    index = source & 31
    return index.map(lambda number: Lanes(row[x.fn.zero_extend(number.value)]))


@opcode("VOTE", "VOTEU")
def vote(x: Form) -> None:
    """Vote `ANY`, `ALL` or `EQ` over the executing lanes; a register gets the mask of lanes whose predicate is true."""
    operand = x.peek()
    d = x.dest() if operand is not None and operand.kind in {"reg", "ureg"} else None
    results = x.dest_predicates(1)
    truth = (x.predicate() & x.execute).mask_bits()
    everyone = Lanes(x.exec_bits)
    if d is not None:
        d.set(truth if d.operand.kind == "ureg" else truth.splat(LANES))
    decided = {"ANY": truth.ne(0), "ALL": truth.eq(everyone), "EQ": truth.eq(0) | truth.eq(everyone)}
    for result in results:
        answer = decided[x.needed("ANY", "ALL", "EQ")]
        result.set(answer if result.operand.kind == "upred" else answer.splat(LANES))


@opcode("ELECT")
def elect(x: Form) -> None:
    """Elect the lowest lane that executes; results: its number, and a predicate that is true only in it."""
    results = x.dest_predicates(1)
    d = x.dest()
    x.predicate()
    leader = Lanes(x.exec_bits).call_flag("cttz", flag=False)
    d.set(leader)
    for result in results:
        result.set(lane_numbers(x.fn).eq(leader.splat(LANES)))


@opcode("MATCH")
def match(x: Form) -> None:
    """Find lanes with equal values of 32 or 64 bits: `.ANY` gives each lane the mask of lanes with its value.

    `.ALL` tests if all are equal: then it gives the mask of the lanes that execute, else 0; a predicate is the result
    of the test.
    """
    results = x.dest_predicates(1)
    d = x.dest()
    words = x.words(2 if x.has("U64") else 1)
    value = join(*words) if len(words) == 2 else words[0]
    on = x.execute
    masks = [(value.eq(value.lane(lane).splat(LANES)) & on).mask_bits() for lane in range(LANES)]
    alike = gather(masks)
    if x.needed("ANY", "ALL") == "ANY":
        d.set(alike)
        return
    everyone = Lanes(x.exec_bits)
    agreed = x.first_active(alike).eq(everyone)
    d.set(agreed.select(everyone, 0).splat(LANES))
    for result in results:
        result.set(agreed.splat(LANES))


REDUCTIONS = {"SUM": "add", "OR": "or", "XOR": "xor"}
NEUTRAL = {"add": 0, "or": 0, "xor": 0, "and": -1, "umin": -1, "umax": 0, "smin": 0x7FFFFFFF, "smax": -0x80000000}


@opcode("REDUX")
def redux(x: Form) -> None:
    """Reduce the values of the executing lanes to one: `.SUM`, `.MIN`, `.MAX`, `.OR`, `.XOR`, else bitwise and."""
    d, a = x.dest(), x.source()
    name = next((word for mod, word in REDUCTIONS.items() if x.has(mod)), "and")
    for extreme in ("MIN", "MAX"):
        if x.has(extreme):
            name = ("s" if x.has("S32") else "u") + extreme.lower()
    masked = x.execute.select(a, NEUTRAL[name])
    symbol = f"llvm.vector.reduce.{name}.v{LANES}i32"
    x.fn.declare(symbol, f"declare i32 @{symbol}({masked.value.type})")
    total = Lanes(x.fn.emit(I32, f"call i32 @{symbol}({masked.value.type} {masked.value.name})"))
    d.set(total)
