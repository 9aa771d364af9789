"""Numbers as people read them."""

from __future__ import annotations

import pytest

from gemmlab.core.numerals import duration, plain


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(13470.3, 4, "13,470"), (9999.4, 4, "9,999"), (1.23456, 4, "1.235"), (0.5, 4, "0.5"), (683.2, 3, "683"),
     (1365.0, 3, "1,365"), (None, 4, "")],
)  # fmt: skip
def test_no_exponents(value: float | None, digits: int, text: str) -> None:
    assert plain(value, digits) == text


@pytest.mark.parametrize(
    ("time_us", "text"),
    [(4.0, "4 us"), (25.12, "25.1 us"), (999.0, "999 us"), (13_470.0, "13.5 ms"), (2.5e6, "2.5 s"), (0.25, "0.25 us")],
)
def test_times_have_the_unit_that_suits_them(time_us: float, text: str) -> None:
    assert duration(time_us) == text
