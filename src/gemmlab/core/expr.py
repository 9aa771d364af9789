"""Parse and evaluate the expressions of kernel files, such as `ceil_div(M, BM) * ceil_div(N, BN)`.

Allowed are names, whole numbers, `+ - * // % ** << >> & |`, comparisons (chained too), `and or not`, `x if c else y`,
`ceil_div`, `min` and `max`, and nothing else, so untrusted files are safe to read. Values are Python numbers. The
length of a text, its depth and the size of results are limited, so that no text takes long. `parse` checks a text and
compiles it into nested functions once; the result is evaluated many times.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gemmlab.core.errors import UsageError
from gemmlab.core.words import nearest

Names = Mapping[str, float]
"""Values by name. Whole numbers are exact at any size; measured values may be fractions."""
_Run = Callable[[Names], float]

LONGEST_TEXT = 2000
DEEPEST = 40
LARGEST = 2**63
"""Every number in a text and every result of arithmetic must be smaller than this in magnitude."""
ALLOWED = "names, whole numbers, + - * // % ** << >> & |, comparisons, and, or, not, if-else, ceil_div, min, max"

_CHARACTERS = re.compile(r"[A-Za-z0-9_ .,()+\-*/%<>=!&|]*")
_MALFORMED_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])[0-9]+[A-Za-z_.]")


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression; call it with values by name to evaluate it.

    The call raises `UsageError` when a name has no value, a divisor is 0, a result is out of range or an operation does
    not take its operands, such as a fraction for `&`.
    """

    text: str
    names: frozenset[str]
    _run: _Run = field(repr=False, compare=False)

    def __call__(self, names: Names) -> float:
        try:
            return self._run(names)
        except _ExprError as trouble:
            raise UsageError(f"expression {self.text!r}: {trouble}") from None

    def whole(self, names: Names) -> int:
        """Return the value as an `int`, 1 for true and 0 for false. Raises `UsageError` for a float."""
        value = self(names)
        if not isinstance(value, int):
            raise UsageError(f"expression {self.text!r}: gives {value!r}, not a whole number")
        return int(value)

    def check_names(self, known: Iterable[str]) -> None:
        """Raise `UsageError` for a name in the expression that is not among `known`."""
        known = list(known)
        for name in sorted(self.names):
            if name not in known:
                raise UsageError(f"expression {self.text!r}: {_unknown(name, known)}")


class _ExprError(Exception):
    """An error inside an expression. Its message lacks the expression's text, which `Expression` and `parse` add."""


def parse(text: str) -> Expression:
    """Parse an expression. Each run of white space becomes one space.

    Raises `UsageError` with the text, the column (from 1) of a fault that has one, and a list of what is allowed.
    """
    text = " ".join(text.split())
    names: set[str] = set()
    try:
        run = _Reader(text, names).read(_tree(text), 0)
    except _ExprError as trouble:
        raise UsageError(f"expression {text!r}: {trouble} (allowed: {ALLOWED})") from None
    return Expression(text, frozenset(names), run)


def split(text: str) -> list[str]:
    """Split `text` at the commas outside parentheses, and strip each part."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _tree(text: str) -> ast.expr:
    if not text:
        raise _ExprError("it is empty")
    if len(text) > LONGEST_TEXT:
        raise _ExprError(f"{len(text)} characters are more than {LONGEST_TEXT}")
    good = _CHARACTERS.match(text)
    if good is not None and good.end() < len(text):
        raise _ExprError(f"column {good.end() + 1}: {text[good.end()]!r} has no place here")
    # Python's parser only warns of some of these and reads others as fractions or hexadecimal.
    if number := _MALFORMED_NUMBER.search(text):
        raise _ExprError(f"column {number.start() + 1}: {number[0]!r} is not a whole number")
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise _ExprError(f"column {error.offset or 1}: {error.msg}") from None
    except (MemoryError, RecursionError, ValueError):
        raise _ExprError("it is nested too deeply") from None


class _Reader:
    """A compiler from a syntax tree to a function; it adds the names in the tree to the set `names`."""

    def __init__(self, text: str, names: set[str]) -> None:
        self._text = text
        self._names = names

    def read(self, node: ast.expr, depth: int) -> _Run:
        if depth > DEEPEST:
            raise _at(node, f"nested more than {DEEPEST} deep")

        def inner(child: ast.expr) -> _Run:
            return self.read(child, depth + 1)

        match node:
            case ast.Constant(value=int(value)) if type(value) is int and value < LARGEST:
                return lambda _names: value
            case ast.Name() | ast.Attribute():
                return self._name(self._dotted(node))
            case ast.BinOp(left, op, right) if type(op) in _BINARY:
                return _calculate(_BINARY[type(op)], inner(left), inner(right), node)
            case ast.UnaryOp(ast.USub(), operand):
                return _calculate(operator.sub, lambda _names: 0, inner(operand), node)
            case ast.UnaryOp(ast.UAdd(), operand):
                return _calculate(operator.add, lambda _names: 0, inner(operand), node)
            case ast.UnaryOp(ast.Not(), operand):
                run = inner(operand)
                return lambda names: not run(names)
            case ast.BoolOp(op, values):
                return _until([inner(value) for value in values], isinstance(op, ast.Or))
            case ast.IfExp(test, body, orelse):
                condition, yes, no = inner(test), inner(body), inner(orelse)
                return lambda names: yes(names) if condition(names) else no(names)
            case ast.Compare(left, ops, comparators) if all(type(op) in _COMPARE for op in ops):
                return _chain([inner(left), *map(inner, comparators)], [_COMPARE[type(op)] for op in ops])
            case ast.Call(ast.Name(id="ceil_div"), [left, right], []):
                return _calculate(_ceil_div, inner(left), inner(right), node)
            case ast.Call(ast.Name(id=("min" | "max") as name), [_, _, *_] as args, []):
                runs, pick = [inner(argument) for argument in args], {"min": min, "max": max}[name]
                return lambda names: pick(run(names) for run in runs)
        raise self._refuse(node)

    def _name(self, name: str) -> _Run:
        if name in ("ceil_div", "min", "max"):
            raise _ExprError(f"{name} is a function: {name}(a, b)")
        self._names.add(name)

        def look_up(names: Names) -> float:
            try:
                return names[name]
            except KeyError:
                raise _ExprError(_unknown(name, names)) from None

        return look_up

    def _dotted(self, node: ast.expr) -> str:
        """Return a dotted name, such as `smsp__inst_executed.sum`, as one name. No attribute of an object is read."""
        match node:
            case ast.Name(name):
                return name
            case ast.Attribute(value, name):
                return f"{self._dotted(value)}.{name}"
        raise self._refuse(node)

    def _refuse(self, node: ast.expr) -> _ExprError:
        written = self._text[node.col_offset : node.end_col_offset]
        shown = written if len(written) <= 40 else f"{written[:37]}..."
        return _at(node, f"{shown!r} is not allowed")


def _calculate(apply: Callable[[float, float], float], left: _Run, right: _Run, node: ast.expr) -> _Run:
    column = node.col_offset + 1

    def run(names: Names) -> float:
        one, two = left(names), right(names)
        try:
            value = apply(one, two)
        except ZeroDivisionError:
            raise _ExprError(f"column {column}: division by zero") from None
        except (TypeError, OverflowError) as error:
            raise _ExprError(f"column {column}: {error}") from None
        if not -LARGEST < value < LARGEST:
            raise _ExprError(f"column {column}: the result does not fit in 64 bits")
        return value

    return run


def _until(runs: list[_Run], stop: bool) -> _Run:
    """Return a function that evaluates `or` (`stop` is True) or `and` (`stop` is False).

    Its value is the first one whose truth is `stop`, else the last one; later values are not evaluated.
    """

    def run(names: Names) -> float:
        value: float = not stop
        for each in runs:
            value = each(names)
            if bool(value) is stop:
                break
        return value

    return run


def _chain(runs: list[_Run], compare: list[Callable[[float, float], bool]]) -> _Run:
    def run(names: Names) -> float:
        left = runs[0](names)
        for holds, each in zip(compare, runs[1:], strict=True):
            right = each(names)
            if not holds(left, right):
                return False
            left = right
        return True

    return run


def _small(apply: Callable[[float, int], float]) -> Callable[[float, float], float]:
    """Return `apply` with its right operand restricted to whole numbers from 0 to 63: no result can fill the memory."""

    def run(value: float, by: float) -> float:
        if not (isinstance(by, int) and 0 <= by < 64):
            raise _ExprError(f"{by} on the right of ** << >> (whole numbers from 0 to 63 are allowed there)")
        return apply(value, by)

    return run


def _ceil_div(dividend: float, divisor: float) -> float:
    return -(-dividend // divisor)


def _at(node: ast.expr, message: str) -> _ExprError:
    return _ExprError(f"column {node.col_offset + 1}: {message}")


def _unknown(name: str, known: Iterable[str]) -> str:
    return f"no value named {name!r}; {nearest(name, sorted(known))}"


_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.Pow: _small(operator.pow), ast.LShift: _small(operator.lshift), ast.RShift: _small(operator.rshift),
}  # fmt: skip
_COMPARE: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
