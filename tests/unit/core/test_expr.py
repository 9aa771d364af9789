from __future__ import annotations

import contextlib
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.core.errors import UsageError
from gemmlab.core.expr import DEEPEST, LARGEST, LONGEST_TEXT, parse, split

NAMES = {"M": 130, "N": 64, "K": 7, "BM": 32, "zero": 0, "rate": 1.5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ceil_div(M, BM)", 5),
        ("ceil_div(M, BM) * ceil_div(N, BM)", 10),
        ("ceil_div(-7, 2)", -3),
        ("ceil_div(0, BM)", 0),
        ("  M\n  + 1 ", 131),
        ("-M // 4 % 5", -130 // 4 % 5),
        ("2 ** 10 >> 3 << 1", 256),
        ("M & 6 | 1", 3),
        ("- 3 ** 2", -9),
        ("+M", 130),
        ("min(M, N, K)", 7),
        ("max(M, N * 3)", 192),
        ("1 < K < N", True),
        ("1 < K > N", False),
        ("K == 7 and M % 32", 2),
        ("zero or N", 64),
        ("zero and 1 // zero", 0),
        ("not zero", True),
        ("not M == N", True),
        ("1 // zero if zero else 5", 5),
        ("zero < 1 or 1 // zero", True),
        ("3 > 2 > 1 >= 1 != 2 <= 2", True),
        ("2 * rate == 3", True),
        ("M if rate > 1 else N", 130),
    ],
)
def test_expressions_by_example(text: str, value: float) -> None:
    assert parse(text)(NAMES) == value


def test_names_may_be_dotted_and_are_only_looked_up() -> None:
    expression = parse("smsp__inst_executed.sum * 2 == __class__.__mro__")
    assert expression.names == {"smsp__inst_executed.sum", "__class__.__mro__"}
    assert expression({"smsp__inst_executed.sum": 4, "__class__.__mro__": 8}) is True


numbers = st.integers(-300, 300)


def _operation(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(
        ["+", "-", "*", "//", "%", "&", "|", "**", "<<", ">>", "<", "<=", "==", "!=", ">", ">=", "and", "or"]
    )
    return st.one_of(
        st.tuples(children, binary, children).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(children, binary, children, binary, children).map(" ".join),
        st.tuples(st.sampled_from(["-", "+", "not "]), children).map(lambda p: f"({p[0]}{p[1]})"),
        st.tuples(children, children, children).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
        st.tuples(st.sampled_from(["min", "max", "ceil_div"]), children, children).map(
            lambda p: f"{p[0]}({p[1]}, {p[2]})"
        ),
    )


texts = st.recursive(st.one_of(numbers.map(str), st.sampled_from(["a", "b", "c"])), _operation, max_leaves=8)


def in_python(text: str, names: dict[str, int]) -> object:
    """What Python makes of it, or the class of what it raises. Powers are made modest first."""
    functions = {"ceil_div": lambda a, b: -(-a // b), "min": min, "max": max, "__builtins__": {}}
    try:
        return eval(text, functions, names)  # noqa: S307  the text is from the strategy above
    except (ZeroDivisionError, ValueError) as error:
        return type(error)


@given(texts, numbers, numbers, numbers)
def test_values_are_those_of_python(text: str, a: int, b: int, c: int) -> None:
    names = {"a": a, "b": b, "c": c}
    try:
        value = parse(text)(names)
    except UsageError as error:
        # Refused: too long, too deep, too large, divided by zero. Anything else would be a difference.
        said = str(error)
        assert "division by zero" in said or any(
            reason in said for reason in ("do not fit", "does not fit", "on the right of", "characters", "deep")
        )
        if "division by zero" in said:
            assert in_python(text, names) is ZeroDivisionError
        return
    expected = in_python(text, names)
    assert value == expected
    assert type(value) is type(expected)


@given(st.one_of(st.text(max_size=60), st.text("aM1 .,()+-*/%<>=!&|ifelsnotr", max_size=60)))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        expression = parse(text)
        assert parse(expression.text) == expression
        expression(dict.fromkeys(expression.names, 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("M +", "column"),
        ("(M", "column 1"),
        ("M.real(1)", "'M.real(1)' is not allowed"),
        ("open(M)", "column 1: 'open(M)' is not allowed"),
        ("1 + len(M)", "column 5"),
        ("min(M)", "'min(M)' is not allowed"),
        ("ceil_div(M)", "'ceil_div(M)' is not allowed"),
        ("ceil_div(M, 2, 3)", "is not allowed"),
        ("ceil_div(*M, 2)", "'*M' is not allowed"),
        ("min(M, N, key=K)", "is not allowed"),
        ("min + 1", "min is a function"),
        ("M / 2", "'M / 2' is not allowed"),
        ("~M", "column 1: '~' has no place here"),
        ("M ^ N", "'^' has no place here"),
        ("M[0]", "'[' has no place here"),
        ("'a'", "has no place here"),
        ("(lambda: 1)", "':' has no place here"),
        ("(M := 1)", "':' has no place here"),
        ("M in N", "'M in N' is not allowed"),
        ("M is N", "'M is N' is not allowed"),
        ("(M, N)", "'(M, N)' is not allowed"),
        ("await M", "column"),
        ("(yield)", "is not allowed"),
        ("True", "'True' is not allowed"),
        ("None", "'None' is not allowed"),
        ("...", "'...' is not allowed"),
        ("1.5", "'1.' is not a whole number"),
        (".5", "'.5' is not allowed"),
        ("0x10", "'0x' is not a whole number"),
        ("1_000", "'1_' is not a whole number"),
        ("1if M else 2", "'1i' is not a whole number"),
        ("007", "column"),
        ("9" * 30, "is not allowed"),
        ("M; N", "has no place here"),
        ("\N{GREEK SMALL LETTER ALPHA}", "has no place here"),
        ("a" * (LONGEST_TEXT + 1), "characters"),
        ("(" * 190 + "M" + ")" * 190, None),
        ("+" * 300 + "M", "deep"),
        ("open(" + "-" * 300 + "M)", "open(---"),
        ("not " * 90 + "M", "deep"),
        ("+".join("M" * (DEEPEST + 2)), "deep"),
    ],
)
def test_what_is_refused_names_the_expression_the_place_and_what_is_allowed(text: str, said: str | None) -> None:
    if said is None:
        assert parse(text)({"M": 3}) == 3
        return
    with pytest.raises(UsageError) as caught:
        parse(text)
    message = str(caught.value)
    assert said in message
    assert repr(text) in message
    assert "allowed: names, whole numbers" in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("M // zero", "column 1: division by zero"),
        ("1 + M % zero", "column 5: division by zero"),
        ("ceil_div(M, zero)", "division by zero"),
        ("2 ** -1", "-1 on the right of"),
        ("2 ** 64", "64 on the right of"),
        ("M ** rate", "1.5 on the right of"),
        ("1 << 2 ** 40", "on the right of"),
        ("1 >> -1", "on the right of"),
        ("rate << 1", "unsupported operand"),
        ("rate & 1", "unsupported operand"),
        ("2 ** 63", "does not fit in 64 bits"),
        ("M ** 63", "does not fit"),
        ("4611686018427387904 * 4", "does not fit"),
        ("rat + 1", "no value named 'rat'; did you mean rate?"),
        ("xyzzy", "known: BM, K, M, N, rate, zero"),
    ],
)
def test_what_cannot_be_evaluated_says_why(text: str, said: str) -> None:
    expression = parse(text)
    with pytest.raises(UsageError) as caught:
        expression(NAMES)
    assert said in str(caught.value)
    assert f"expression {text!r}" in str(caught.value)


def test_names_can_be_checked_before_there_are_values() -> None:
    expression = parse("ceil_div(M, BM) + X")
    expression.check_names(["M", "BM", "X"])
    with pytest.raises(UsageError, match="no value named 'X'; known: BM, M"):
        expression.check_names(["M", "BM"])


def test_whole_numbers_are_asked_for_by_name() -> None:
    assert parse("M == 130").whole(NAMES) == 1
    assert type(parse("M == 130").whole(NAMES)) is int
    with pytest.raises(UsageError, match=r"gives 3\.0, not a whole number"):
        parse("rate * 2").whole(NAMES)


def test_split_leaves_calls_whole() -> None:
    assert split("ceil_div(M, 32), N") == ["ceil_div(M, 32)", "N"]
    assert split("max(min(1, 2), 3)") == ["max(min(1, 2), 3)"]
    assert split("1,,2") == ["1", "", "2"]


def test_the_largest_values_stop_at_64_bits() -> None:
    assert parse(f"{LARGEST - 1}")({}) == LARGEST - 1
    assert parse(f"-{LARGEST - 1}")({}) == -(LARGEST - 1)
    with pytest.raises(UsageError, match="does not fit"):
        parse("x + 1")({"x": LARGEST - 1})


def test_nothing_a_text_can_say_takes_long() -> None:
    worst = ["2**63**63**63", "((((9**9)**9)**9)**9)**9", "1<<63<<63<<63", "*".join(["9" * 18] * 20), "9**63" * 60]
    started = time.perf_counter()
    for text in worst:
        with pytest.raises(UsageError):
            parse(text)({})
    assert time.perf_counter() - started < 1.0


def test_fractions_come_through_as_they_are() -> None:
    assert math.isclose(parse("x * 3 + 1")({"x": 0.25}), 1.75)
