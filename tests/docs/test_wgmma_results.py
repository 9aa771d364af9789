"""The page of the emulator gives the numbers of wgmma results that an H200 recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/emulator.md").read_text()
RECORD = ROOT / "tests/data/wgmma"
LEAST = 1_000_000
"""Least number of results to compare for each of the types whose sums are float32."""


def recorded(kind: str) -> tuple[int, int]:
    """Return the results with float32 sums of a type of both operands: those stored bit by bit, and those in checksums
    of rows.
    """
    whole = in_rows = 0
    for file in ("bits", "least", "sums"):
        with np.load(RECORD / f"{file}.npz") as arrays:
            for name in arrays.files:
                columns, sums, a, b = name.split("_")[:4]
                if (sums, a, b) == ("f32", kind, kind):
                    whole += arrays[name].size * (file != "sums")
                    in_rows += arrays[name].size * int(columns[1:]) * (file == "sums")
    return whole, in_rows


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32"])
@pytest.mark.sampled(3)
def test_the_page_gives_the_recorded_numbers_of_results(kind: str) -> None:
    whole, in_rows = recorded(kind)
    assert f"| {kind}, {kind} | f32 | {whole:,} | {in_rows:,} | 0 |" in PAGE
    assert f"{kind} {whole + in_rows:,}" in PAGE
    assert whole + in_rows >= LEAST
