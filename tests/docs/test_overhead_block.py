"""The block on a call's overhead: medians and ratios as a record of known times has them."""

from __future__ import annotations

import build_tables
from blocks.overhead import overhead
from blocks.records import ROOT
from gemmlab.core.records import Record, Result, Sample


def timed(name: str, beside: str, role: str, n: int, *times: float) -> Result:
    samples = tuple(Sample(0, index, us, 900, 100, ()) for index, us in enumerate(times))
    facts = {"role": role, "beside": beside, "package": "torch", "version": "2.9"}
    return Result(name, {}, f"{n}x{n}x{n}", 1, 1, facts=facts, samples=samples)


def test_a_row_for_each_way_to_call_it() -> None:
    ours, theirs = "gemmlab.gemm [torch, out]", "torch.mm [out]"
    results = (
        timed(ours, theirs, "library call", 32, 9.0, 9.0, 12.0), timed(theirs, theirs, "peer", 32, 6.0, 6.0, 6.0),
        timed(ours, theirs, "library call", 64, 8.0, 7.0, 8.0), timed(theirs, theirs, "peer", 64, 8.0, 9.0, 8.0),
        timed("torch.empty", theirs, "part", 64, 1.0, 1.0, 1.0),
    )  # fmt: skip
    device = {"id": "cuda:0", "name": "A GPU", "facts": {"driver": "580"}}
    said = overhead(Record("bench", "gemm", {"python": "3.12", "cpu": "a CPU"}, device, None, results))
    assert "| `gemmlab.gemm [torch, out]` | 8.5 | `torch.mm` | 7.0 | 1.25 | 1.50 |" in said
    assert "n = 32, 64" in said
    assert "torch 2.9, Python 3.12, a CPU, A GPU, driver 580" in said
    assert "torch.empty" not in said


def test_the_page_has_what_the_record_says() -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    assert f"<!-- begin overhead -->\n\n{build_tables.BLOCKS['overhead']()}\n" in page, "run `make tables`"
