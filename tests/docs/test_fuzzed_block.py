"""The sentence on random products that were checked: what the record says, in the page."""

from pathlib import Path

import build_tables
from blocks.fuzzed import fuzzed

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


def test_the_sentence_has_the_numbers_of_the_record() -> None:
    record = {
        "schema": "gemmlab.fuzz/1", "call": "gemmlab.gemm", "seed": 5, "calls": 1200, "products": 34_567, "wrong": 0,
        "ranges": {"m": [0, 47], "n": [0, 48], "k": [1, 49]}, "version": "0.1.0", "cpu": "a CPU", "numpy": "2.4",
        "python": "3.12", "taken": "2026-11-22",
    }  # fmt: skip
    said = fuzzed(record)
    assert said.startswith("34,567 random products in 1,200 calls of `gemmlab.gemm`, none wrong (m 0 to 47, n 0 to 48,")
    assert "3 wrong" in fuzzed({**record, "wrong": 3})


def test_the_page_quotes_the_record() -> None:
    block = build_tables.BLOCKS["fuzzed"]()
    assert "none wrong" in block
    assert f"<!-- begin fuzzed -->\n\n{block}\n" in PAGE.read_text(encoding="utf-8"), "run `make tables`"
