"""Moves and selects, within and between the register files."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import lane_mask
from gemmlab.emulator.layout import LANES


@opcode("MOV", "UMOV")
def mov(x: Form) -> None:
    """Copy a 32-bit operand. A byte mask, which is printed only if it is not full, is not supported."""
    x.allow()
    d, a = x.dest(), x.source()
    d.set(a)


@opcode("SEL", "USEL")
def sel(x: Form) -> None:
    x.allow()
    d, a, b, p = x.dest(), x.source(), x.source(), x.predicate()
    d.set(p.select(a, b))


@opcode("R2UR")
def r2ur(x: Form) -> None:
    """Copy the value of the lowest executing lane to a uniform register.

    A result predicate is true in lanes whose value differs; with `.OR` it stays true where it was.
    """
    x.allow("OR")
    others = x.dest_predicates(1)
    d, a = x.dest(), x.source()
    first = x.first_active(a)
    for other in others:
        differs = a.ne(first.splat(LANES))
        other.set(differs | lane_mask(x.warp.load(x.field(other.record))) if x.has("OR") else differs)
    d.set(first)
