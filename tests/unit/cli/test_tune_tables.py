"""What `gemmlab tune` prints of a search's end."""

from __future__ import annotations

import pytest

from gemmlab.cli.tune_tables import end_of
from gemmlab.results.sensitivity import Sensitivity
from gemmlab.tuning.session import Row, Tuning


def tuning(tried: int, seconds: float) -> Tuning:
    best = Row({"BM": 8}, 5.0, (5.0,))
    return Tuning(
        kernel="naive", op="gemm", size="64x64x64", problem={}, device="a GPU", predicted=True, best=best, default=best,
        rows=(best,), faults={}, legal=20, tried=tried, seconds=seconds, budget_s=30.0, digest="", journal="",
        sensitivity=Sensitivity("naive", best.config, best.us, (), ()),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tried", "seconds", "said"),
    [
        (8, 18.8, "12 left, in 18.8 s of the budget of 30 s.\nThe rest of it was kept"),
        (8, 30.2, "12 left: the budget of 30 s ended; a larger --budget continues"),
    ],
)
def test_a_search_that_leaves_configurations_says_why(tried: int, seconds: float, said: str) -> None:
    assert said in end_of(tuning(tried, seconds))


def test_a_search_of_all_has_nothing_to_explain() -> None:
    # Whether the budget ended meanwhile does not matter then.
    assert end_of(tuning(20, 9.0)) == "all of 20 legal configurations tried, in 9.0 s"
    assert end_of(tuning(20, 30.2)) == "all of 20 legal configurations tried, in 30.2 s"
