"""Criteria in plain words, with bounds as numbers."""

from __future__ import annotations

import pytest

from gemmlab.core.criteria import criteria
from gemmlab.core.expr import parse

GIVEN = {"M": 64, "N": 32, "K": 16}
COUNTED = {
    "global_load_requests": 5000,
    "barriers": 9,
    "executed_LDG_128": 2,
    "executed_LDG": 4,
    "error": 0.625,
    "loads": 1283.2,
}


@pytest.mark.parametrize(
    ("text", "asked", "counted"),
    [
        (
            "global_load_requests <= M * N * K // 2",
            ["global load requests: at most 16,384"],
            ["global load requests: 5,000 (at most 16,384)"],
        ),
        ("8 >= barriers", ["barriers: at most 8"], ["barriers: 9 (at most 8)"]),
        ("1 <= barriers < 6", ["barriers: at least 1 and less than 6"], ["barriers: 9 (at least 1 and less than 6)"]),
        (
            "barriers == 9 and executed_LDG_128 > 0",
            ["barriers: exactly 9", "LDG.128 instructions: more than 0"],
            ["barriers: 9 (exactly 9)", "LDG.128 instructions: 2 (more than 0)"],
        ),
        (
            "executed_LDG == executed_LDG_128",
            ["LDG instructions == LDG.128 instructions"],
            ["LDG instructions == LDG.128 instructions: no (LDG instructions 4, LDG.128 instructions 2)"],
        ),
        ("loads <= 1400", ["loads: at most 1,400"], ["loads: 1,283 (at most 1,400)"]),
        ("2 * error <= 2", ["2 * error: at most 2"], ["2 * error: 1.25 (at most 2)"]),
    ],
)
def test_a_statement_becomes_words_and_numbers(text: str, asked: list[str], counted: list[str]) -> None:
    found = criteria(parse(text), frozenset(GIVEN))
    assert [one.request(GIVEN) for one in found] == asked
    assert [one.result({**GIVEN, **COUNTED}) for one in found] == counted


def test_words_of_ones_own_are_those_of_the_figure_or_of_the_whole() -> None:
    (one,) = criteria(parse("executed_LDG + 3 * executed_LDG_128 <= K"), frozenset(GIVEN), "words loaded")
    assert one.result({**GIVEN, **COUNTED}) == "words loaded: 10 (at most 16)"
    (one,) = criteria(parse("executed_LDG == executed_LDG_128 and barriers > 0"), frozenset(GIVEN), "all are wide")
    assert one.request(GIVEN) == "all are wide"
    assert one.result({**GIVEN, **COUNTED}).startswith("all are wide: no (barriers 9, LDG instr")
