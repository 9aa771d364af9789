from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.ops.op import Operand
from gemmlab.verify.guards import LEAST_GUARD_WORDS, GuardedBuffer


def buffer(role: str = "out", rows: int = 3, cols: int = 5, ld: int = 8, shift: int = 0) -> GuardedBuffer:
    contents = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
    return GuardedBuffer(Operand("c", rows, cols, ld, role), contents, shift)


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 4), st.integers(0, 20))
def test_contents_come_back_and_nothing_is_violated(rows: int, cols: int, extra: int, shift: int) -> None:
    made = buffer("in", rows, cols, cols + extra + (cols + extra == 0), shift)
    assert made.flat.size == ((rows - 1) * made.operand.ld + cols if rows and cols else 0)
    assert made.contents().shape == (rows, cols)
    assert (made.contents().reshape(-1) == np.arange(rows * cols)).all()
    assert made.violations() == []


def test_outputs_may_be_written_and_inputs_not() -> None:
    for role, count in (("out", 0), ("inout", 0), ("in", 1)):
        made = buffer(role)
        made.flat[8 + 2] = 99
        violations = made.violations()
        assert len(violations) == count
        if violations:
            (found,) = violations
            assert (found.place, found.row, found.column, found.words) == ("input", 1, 2, 1)


def test_a_gap_between_rows_belongs_to_nobody() -> None:
    made = buffer()
    made.flat[5:8] = 1
    (found,) = made.violations()
    assert (found.place, found.row, found.column, found.words) == ("gap", 0, 5, 3)
    assert "now 1 (0x3F800000)" in found.explain()


@pytest.mark.parametrize("shift", [0, 1, 17])
def test_both_guards_are_watched_to_their_ends(shift: int) -> None:
    made = buffer(shift=shift)
    words = made._words
    start = words.size - LEAST_GUARD_WORDS - made.flat.size
    for offset, place in ((-start, "before"), (-1, "before"), (made.flat.size, "after")):
        words[start + offset] ^= 1
        (found,) = made.violations()
        assert (found.place, found.offset, found.words) == (place, offset, 1)
        words[start + offset] ^= 1
    words[-1] ^= 1
    assert made.violations()[0].place == "after"


def test_rewriting_the_same_bits_is_no_violation_but_another_nan_is() -> None:
    made = GuardedBuffer(Operand("a", 1, 2, 2, "in"), np.full((1, 2), np.nan, np.float32))
    made.flat[0] = np.float32(np.nan)
    assert made.violations() == []
    made.flat.view(np.uint32)[0] ^= 1
    assert made.violations()[0].place == "input"
