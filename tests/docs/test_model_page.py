"""Figures of the page on predicted times that stand in its sentences, beside their records."""

from __future__ import annotations

import json
import re

from new_pairs import PAIRS, outcome
from support.paths import ROOT

PAGE = " ".join((ROOT / "docs" / "model.md").read_text(encoding="utf-8").split())


def test_the_pairs_that_nobody_had_timed_are_those_of_the_record() -> None:
    rows = json.loads(PAIRS.read_text(encoding="utf-8"))
    stated = re.search(
        r"(\d+) pairs differ by 5% or more: (\d+) have the right sign \((\S+)%\), and the median error is (\S+)%\.",
        PAGE,
    )
    assert stated is not None
    assert (
        outcome(rows) == f"{stated[1]} pairs differ by 5% or more: {stated[2]} signs right, median error {stated[4]}%"
    )
    assert f"{int(stated[2]) / int(stated[1]):.1%}" == f"{stated[3]}%"
    assert all(row["same_code"] for row in rows)
