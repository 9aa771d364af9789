"""Comparison of integers, and the result predicates of comparisons of any type."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gemmlab.emulator.form import Form, PredicateResult
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes

_SIGNED = {"LT": Lanes.lt, "LE": Lanes.le, "GT": Lanes.gt, "GE": Lanes.ge, "EQ": Lanes.eq, "NE": Lanes.ne}
_UNSIGNED = _SIGNED | {"LT": Lanes.ult, "LE": Lanes.ule, "GT": Lanes.ugt, "GE": Lanes.uge}


def combine(x: Form, results: list[PredicateResult], truth: Lanes, other: Lanes) -> None:
    """Emit writes of `truth` and its opposite to `results`.

    Each is combined with `other` by the operation in the modifiers.
    """
    word = x.one_of("AND", "OR", "XOR", default="AND")
    for target, value in zip(results, (truth, ~truth), strict=False):
        target.set({"AND": value & other, "OR": value | other, "XOR": value ^ other}[word])


@opcode("ISETP", "UISETP")
def isetp(x: Form) -> None:
    """Compare two integers, and combine the result and its opposite with a predicate.

    `.EX` compares upper halves; then the last operand is the result of the same comparison of the lower halves.
    """
    x.allow(*_SIGNED, "T", "F", "U32", "AND", "OR", "XOR", "EX")
    results = x.dest_predicates(2)
    a, b = x.source(), x.source()
    other = x.predicate()
    name = x.needed(*_SIGNED, "T", "F")
    if name in {"T", "F"}:
        if x.has("EX"):
            raise x.refuse("a constant result of a wide comparison")
        truth = x.constant(int(name == "T"), "i1")
    else:
        truth = _compared(name, a, b, x, _UNSIGNED if x.has("U32") else _SIGNED)
    combine(x, results, truth, other)


def _compared(name: str, a: Lanes, b: Lanes, x: Form, words: Mapping[str, Callable[[Lanes, Lanes], Lanes]]) -> Lanes:
    if not x.has("EX"):
        return words[name](a, b)
    lower = x.predicate()
    if name == "NE":
        return a.ne(b) | lower
    equal = a.eq(b) & lower
    return equal if name == "EQ" else words[name[0] + "T"](a, b) | equal
