"""Criteria: statements about counters, such as `global_load_requests <= M * N * K // 512`, in plain words.

Before a run `Criterion.request` gives `global load requests: at most 6,144`; after it `Criterion.result` gives `global
load requests: 131,072 (at most 6,144)`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from gemmlab.core.expr import Expression, parse

_EXECUTED = "executed_"
_WORDS: Mapping[type[ast.cmpop], str] = {
    ast.LtE: "at most", ast.GtE: "at least", ast.Eq: "exactly", ast.Lt: "less than", ast.Gt: "more than",
    ast.NotEq: "not",
}  # fmt: skip
_TURNED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Lt: ast.Gt, ast.Gt: ast.Lt,
}  # fmt: skip
_LARGE = 1000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


@dataclass(frozen=True, slots=True)
class Criterion:
    """A statement (`that`). `figure` is the measured expression that the statement bounds; `None` if it bounds none."""

    that: Expression
    figure: Expression | None
    words: str
    """The figure in words, or the whole statement if there is no figure."""
    limits: tuple[tuple[str, Expression], ...] = ()
    """Bounds of the figure, each with its relation in words: `("at most", bound)`."""

    def request(self, constants: Mapping[str, float]) -> str:
        """Return the words and, if there is a figure, its limits as numbers, with the values in `constants`."""
        return f"{self.words}: {self._limits(constants)}" if self.figure else self.words

    def result(self, values: Mapping[str, float]) -> str:
        """Return the words with the figure's value and limits; without a figure, with yes or no and all values.

        `values` has a value for every name in the statement.
        """
        if self.figure is not None:
            return f"{self.words}: {number(self.figure(values))} ({self._limits(values)})"
        figures = ", ".join(f"{plain_words(name)} {number(values[name])}" for name in sorted(self.that.names))
        return f"{self.words}: {'yes' if self.that(values) else 'no'} ({figures})"

    def _limits(self, constants: Mapping[str, float]) -> str:
        return " and ".join(f"{word} {number(bound(constants))}" for word, bound in self.limits)


def criteria(that: Expression, constants: frozenset[str], says: str = "") -> list[Criterion]:
    """Split a statement at its `and`s and return one criterion for each part.

    Names that are not in `constants` are measured. `says` may give the words instead: those of the figure, if there is
    one part and it has a figure; else those of the whole statement, which is then the only criterion.
    """
    parts = _conjuncts(ast.parse(that.text, mode="eval").body)
    found = [_criterion(that.text, part, constants) for part in parts]
    if not says:
        return found
    if len(found) == 1 and (only := found[0]).figure is not None:
        return [Criterion(only.that, only.figure, says, only.limits)]
    return [Criterion(that, None, says)]


def _conjuncts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in _conjuncts(value)]
    return [node]


def _criterion(text: str, node: ast.expr, constants: frozenset[str]) -> Criterion:
    that = parse(_source(text, node))
    if isinstance(node, ast.Compare):
        sides = [parse(_source(text, side)) for side in (node.left, *node.comparators)]
        measured = [place for place, side in enumerate(sides) if side.names - constants]
        # The figure stands on one side, or in the middle of a range: 1 <= figure <= 6.
        if len(measured) == 1 and max(measured[0], len(node.ops) - measured[0]) <= 1:
            figure = sides[measured[0]]
            return Criterion(that, figure, _in_words(figure), _limits(node.ops, sides, *measured))
    return Criterion(that, None, _in_words(that))


def _limits(ops: list[ast.cmpop], sides: list[Expression], figure: int) -> tuple[tuple[str, Expression], ...]:
    """Return the bounds beside side number `figure`. A bound before it is turned round: `1 <= x` is `x at least 1`."""
    before = [(_WORDS[_TURNED.get(type(op), type(op))], side) for op, side in zip(ops[:figure], sides, strict=False)]
    after = [(_WORDS[type(op)], side) for op, side in zip(ops[figure:], sides[figure + 1 :], strict=True)]
    return (*before, *after)


def _source(text: str, node: ast.expr) -> str:
    return ast.get_source_segment(text, node) or ""


def _in_words(expression: Expression) -> str:
    """Return the text of an expression with its names replaced by plain words."""
    return _NAME.sub(lambda found: plain_words(found[0]) if found[0] in expression.names else found[0], expression.text)


def plain_words(name: str) -> str:
    """Return a counter's name in words: `executed_LDG_128` is `LDG.128 instructions`."""
    if name.startswith(_EXECUTED):
        return f"{name.removeprefix(_EXECUTED).replace('_', '.')} instructions"
    return name.replace("_", " ")


def number(value: float) -> str:
    """Return a number as text: without fraction and with commas if it is whole or at least 1000, else with three
    digits.
    """
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= _LARGE else f"{value:.3g}"
