"""Bitwise functions of registers and of predicates."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.isa.truth_table import evaluate
from gemmlab.emulator.lanes import Lanes


@opcode("LOP3", "ULOP3", literals=(-2,))
def lop3(x: Form) -> None:
    """Compute any bitwise function of three operands, given by its truth table.

    A result predicate is true if any bit of the result is set; it is combined with the last operand by `or`, or with
    `.PAND` by `and`.
    """
    x.allow("LUT", "PAND")
    outs = x.dest_predicates(1)
    d = x.dest()
    inputs = [x.source(), x.source(), x.source()]
    result = evaluate(x.literal(), inputs)
    other = x.predicate()
    for out in outs:
        some = result.ne(0)
        out.set(some & other if x.has("PAND") else some | other)
    d.set(result)


@opcode("PLOP3", "UPLOP3", literals=(-1, -2))
def plop3(x: Form) -> None:
    """Compute two functions of three truth values, which are predicates or the signs of registers."""
    x.allow("LUT", suffixes=("SIGN",))
    outs = x.dest_predicates(2, least=2)
    inputs = [_truth(x), _truth(x), _truth(x)]
    tables = x.literal(), x.literal()
    for out, table in zip(outs, tables, strict=True):
        out.set(evaluate(table, inputs))


def _truth(x: Form) -> Lanes:
    operand = x.peek()
    if operand is not None and "SIGN" in operand.suffix:
        return x.source().lt(0)
    return x.predicate()
