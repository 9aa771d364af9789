"""Figures of the page on predicted times that stand in its sentences, beside their records."""

from __future__ import annotations

import json
import re

from new_pairs import PAIRS, outcome
from support.paths import ROOT

PAGE = " ".join((ROOT / "docs" / "model.md").read_text(encoding="utf-8").split())


def test_the_pairs_that_nobody_had_timed_are_those_of_the_records() -> None:
    found = re.findall(
        r"\(`benchmarks/results/(\S+)`\)\. (\d+) pairs differ by 5% or more: (\d+) have the right sign \((\S+)%\), and "
        r"the median error is (\S+)%\.",
        PAGE,
    )
    assert [name for name, *_ in found] == ["pairs-h200.json", "pairs-h200-2.json"]
    for name, pairs, right, share, error in found:
        rows = json.loads((PAIRS.parent / name).read_text(encoding="utf-8"))
        assert outcome(rows) == f"{pairs} pairs differ by 5% or more: {right} signs right, median error {error}%"
        assert f"{int(right) / int(pairs):.1%}" == f"{share}%"
        assert all(row["same_code"] for row in rows)
