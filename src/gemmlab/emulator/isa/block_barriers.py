"""Opcodes of block barriers: BAR, and B2R for the results of reductions."""

from __future__ import annotations

from gemmlab.emulator.barriers import ARRIVE
from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes, lane_mask
from gemmlab.emulator.layout import LANES, Block
from gemmlab.ir.types import I32, I64


@opcode("B2R")
def b2r(x: Form) -> None:
    """Read the result of the block's last BAR.RED (`.RESULT`): a count into the register, or the result of and/or into
    the predicate.
    """
    if not x.has("RESULT"):
        raise x.refuse()
    d = x.dest()
    barrier = x.block.at(Block.BARRIER + Block.BARRIER_RESULT, I64)
    d.set(Lanes(x.fn.load(barrier)).trunc("i32").splat(LANES))
    for result in x.dest_predicates(1):
        word = Lanes(x.fn.load(barrier + 2)).trunc("i32")
        result.set(word.ne(0).splat(LANES))


REDUCTIONS = {"AND": 1, "OR": 2, "POPC": 3}


@opcode("BAR")
def bar(x: Form) -> None:
    """Arrive at a block barrier: `BAR.SYNC b[, threads]`, `.ARV` without a wait, `.RED` with a predicate to reduce."""
    number = x.first_active(x.source())
    threads = Lanes(x.fn.constant(0, I32))
    truth = x.execute
    while x.left:
        operand = x.peek()
        if operand is not None and operand.kind in {"pred", "upred"}:
            truth = x.predicate()
        else:
            threads = x.first_active(x.source())
    votes = (truth & lane_mask(x.exec_bits)).mask_bits()
    mode = next((code for name, code in REDUCTIONS.items() if x.has(name)), 0)
    args = (number.zext("i64").value, threads.zext("i64").value, votes.value, int(x.has("ARV")) + (mode << 8))
    x.status(x.service("arrive", I32, ARRIVE, x.exec_bits, *args))
