"""The block on the regret of the choice: what the record says."""

from __future__ import annotations

from typing import Any

import pytest

import build_tables
from blocks.records import ROOT
from blocks.regret import SCHEMA, regret


def shape(size: str, ratio: float, best: str) -> dict[str, Any]:
    chosen = {"kernel": "split_k", "config": {"BM": 64, "SPLITS": 4}, "us": 10.0 * ratio}
    return {"size": size, "regret": ratio, "chosen": chosen, "best": {**chosen, "kernel": best, "us": 10.0}}


RECORD: dict[str, Any] = {
    "schema": SCHEMA, "seed": 7, "device": "A GPU", "environment": {"time_utc": "2026-11-22T01"}, "timed_again": 6,
    "median": 1.0, "worst": 1.125, "shapes": [shape("3x4x5 nt", 1.0, "split_k"), shape("6x7x8", 1.125, "naive")],
}  # fmt: skip


def test_the_largest_regrets_are_named() -> None:
    said = regret(RECORD)
    assert "Over 2 random products: median **1.000**, worst **1.125**." in said
    assert "that of the best time in 1 of them" in said
    first = said.split("\n")[4]
    assert first == "| `6x7x8` | 1.125 | `split_k` BM=64 SPLITS=4 | 11.2 | `naive` BM=64 SPLITS=4 | 10.0 |"
    assert "Seed 7, A GPU, 2026-11-22, cold caches" in said
    assert regret({**RECORD, "shapes": []}) == "*Not measured yet.*"
    with pytest.raises(ValueError, match="schema"):
        regret({**RECORD, "schema": "other"})


def test_the_page_has_what_the_record_says() -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    assert f"<!-- begin regret -->\n\n{build_tables.BLOCKS['regret']()}\n" in page, "run `make tables`"
