"""Warpgroup multiplications (wgmma): their issue, their fences and their waits."""

from __future__ import annotations

from gemmlab.emulator.address_space import bit_of
from gemmlab.emulator.events import NOTE
from gemmlab.emulator.form import UNIFORM_BASE, WRITE, Form
from gemmlab.emulator.instruction_layout import Insn, Kind
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES, Block, Status, Warp
from gemmlab.emulator.wgmma_flight import ISSUE, TOO_FEW, WAIT
from gemmlab.emulator.wgmma_layout import FORMATS, OPERAND_BYTES, SUMS, WARPGROUP, Flight, Shape
from gemmlab.ir.types import I32, I64, VOID
from gemmlab.ir.values import Value
from gemmlab.sass.vector_registers import SIZE

_INPUTS = {"HGMMA": ("BF16", "TF32"), "QGMMA": ("E4M3", "E5M2"), "IGMMA": ("S8", "U8")}
_SUFFIXES = {
    "negA": Shape.NEGATE_A, "negB": Shape.NEGATE_B, "tnspA": Shape.TRANSPOSE_A, "tnspB": Shape.TRANSPOSE_B,
}  # fmt: skip


def _shape(x: Form) -> int:
    """Return the word that describes the form (`Shape`), without the flags that depend on the operands.

    Raises `UnsupportedError` if the form is not emulated.
    """
    size, *rest = x.modifiers or ("",)
    if size == "SP":
        raise x.refuse("sparse multiplications are not emulated")
    match = SIZE.fullmatch(size)
    if match is None:
        raise x.refuse(f"a size of {size or 'nothing'}")
    kinds = [name for name in rest if name in _INPUTS[x.instruction.opcode]]
    sums = [name for name in rest if name in SUMS] or ["S32"]
    others = [name for name in rest if name not in {*kinds, *sums, "SAT"}]
    if others:
        raise x.refuse(f"{', '.join(others)} is not emulated")
    if x.instruction.opcode == "HGMMA":
        kinds = (kinds or ["F16"]) * 2
    columns, depth = int(match[1]), int(match[2])
    if len(kinds) != 2 or FORMATS[kinds[0]].bits * depth != 8 * OPERAND_BYTES:
        raise x.refuse(f"{' and '.join(kinds)} in a size of {size}")
    shape = FORMATS[kinds[0]].code << Shape.A | FORMATS[kinds[1]].code << Shape.B | SUMS[sums[0]] << Shape.SUM
    return shape | columns << Shape.COLUMNS | (Shape.SATURATE if x.has("SAT") else 0)


@opcode("HGMMA", "QGMMA", "IGMMA")
def gmma(x: Form) -> None:
    """Issue this warp's 16 rows of D = A B + C, which has 64 rows.

    Operands: D, registers of A (optional), descriptors of A and B, C, a predicate (optional; if false, C is zero), and
    a scoreboard (optional) if the group ends here.
    """
    shape = _shape(x)
    _target, target = x.take("reg")
    registers = x.fn.constant(0, I64)
    operand = x.peek()
    if operand is not None and operand.kind == "reg":
        left, record = x.take("reg")
        registers, shape = x.field(record), shape | Shape.REGISTERS | (Shape.NEGATE_A if left.neg else 0)
    descriptors, record = x.take("mem")
    unknown = [name for name in descriptors.suffix if name not in _SUFFIXES]
    if unknown or descriptors.name != "gdesc":
        raise x.refuse(f"{descriptors.text} is not understood")
    for name in descriptors.suffix:
        shape |= _SUFFIXES[name]
    pair = x.field(record, UNIFORM_BASE)
    a, b = (x.warp.load(pair + 8 * part, I64) for part in range(2))
    addend, source = x.take("reg")
    if addend.neg:
        raise x.refuse("a negated accumulator")
    accumulator = Lanes(x.field(source))
    used = accumulator.ne(Warp.ZERO)
    for predicate in x.predicates(1):
        used = used & predicate.lane(0)
    closes = 0
    if x.left:
        x.take("scoreboard")
        closes = 1
    _together(x)
    _whole(x)
    into = Lanes(x.field(target, WRITE))
    x.service(
        "issue_wgmma", VOID, ISSUE, a, b, shape, used.select(accumulator, 0).value,
        into.eq(Warp.SWALLOW).select(into.like(0), into).value, registers, closes,
    )  # fmt: skip


def _together(x: Form) -> None:
    """Emit code that records an event if not all lanes of the warp execute the instruction."""
    missing = ~Lanes(x.exec_bits)
    with x.fn.when(missing.ne(0).value):
        lane: Value = Lanes(x.exec_bits).call_flag("cttz", flag=True).zext("i64").value
        x.service("note", VOID, NOTE, Kind.WARPGROUP, lane, missing.zext("i64").value, 0, -1)


def _whole(x: Form) -> None:
    """Emit code that records an event if the block has fewer than four warps of the warpgroup."""
    there = Lanes(x.block.load(Block.WARP_COUNT, I64)) - (Lanes(x.warp.load(Warp.INDEX, I64)) & -WARPGROUP)
    with x.fn.when(there.lt(WARPGROUP).value):
        x.service("note", VOID, NOTE, Kind.WARPGROUP, 0, there.value, TOO_FEW, -1)


@opcode("WARPGROUP")
def warpgroup(x: Form) -> None:
    """Execute `ARRIVE` (wgmma.fence), which orders accesses to registers before multiplications, or `DEPBAR.LE`, which
    waits until at most a given number of groups is in flight.
    """
    x.allow("ARRIVE", "DEPBAR", "LE")
    if x.has("ARRIVE"):
        _together(x)
        return
    x.take("scoreboard")
    left = x.source().lane(0)
    status = x.fn.var(I32, Status.GO)
    with x.fn.when(x.warp.load(Warp.FLIGHT, I64).differs(0)):
        early = x.service("wait_wgmma", I32, WAIT, left.zext("i64").value)
        with x.fn.when(early.differs(0)):
            # Another warp of the warpgroup has not issued the multiplications yet: execute the wait again next turn.
            x.warp.add(Warp.PC, -1)
            for counter, amount in ((Insn.EXECUTED, 1), (Insn.ACTIVE, LANES), (Insn.PREDICATED_ON, LANES)):
                x.insn.add(counter, -amount)
            status.set(Status.SPENT)
    x.status(status.read())


def remember_fence(x: Form, count: Lanes) -> None:
    """Emit code that records a proxy fence: the warp's clock for each lane, and its vector clock if all lanes execute.

    `count` is the number of fences of each lane before this one. In a kernel without warpgroup multiplications the code
    does nothing.
    """
    fn = x.fn
    with fn.when(x.warp.load(Warp.FLIGHT, I64).differs(0)):
        index = x.warp.load(Warp.INDEX, I64)
        known = fn.cast(x.block.load(Block.CLOCKS, I64), I32) + index * LANES
        clock = known[index]
        with fn.when(Lanes(x.exec_bits).eq(-1).value):
            fn.store(fn.cast(x.warp.load(Warp.FLIGHT, I64) + Flight.FENCED, I32), fn.load(known, LANES))
        fences = fn.cast(x.warp.load(Warp.FLIGHT, I64) + Flight.FENCES, I32)
        turn = fn.scratch(I32, LANES)
        fn.store(turn, (count & (Flight.FENCE_TURNS - 1)).value)
        with fn.range(LANES) as lane, fn.when(bit_of(fn, x.exec_bits, lane)):
            fences[fn.zero_extend(turn[lane]) * LANES + lane] = clock
