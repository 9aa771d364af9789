"""The table of searches on recorded spaces."""

from __future__ import annotations

from blocks.searches import searches


def row(space: str, search: str, median: float | None, share: float = 0.05) -> dict[str, object]:
    p90, worst = (None, None) if median is None else (median + 0.1, median + 0.2)
    return {"space": space, "search": search, "share": share, "median": median, "p90": p90, "worst": worst}


def test_the_best_is_bold_and_no_answer_is_said() -> None:
    rows = [row("a at 1", "gemmlab", 1.01), row("a at 1", "random", 1.2), row("reduce_peak at 1", "random", None)]
    lines = searches({"seeds": 7, "rows": rows}).splitlines()
    assert "| a at 1 | judged | gemmlab | **1.010, 1.110, 1.210** |" in lines
    assert "| a at 1 | judged | random | 1.200, 1.300, 1.400 |" in lines
    assert any("fit" in line and "no answer" in line for line in lines)
    assert "7 seeds" in lines[-1]
