"""Results in a notebook: a repr of one short line, and HTML that is whole, escaped and without scripts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.notebook_view import LONGEST, MOST_ROWS, Display, Grid, View, cell, grid, short
from gemmlab.core.records import Record
from gemmlab.results.shipped_records import recorded_climb
from gemmlab.results.summary import summarise
from support.cuda_source import needs_compiler
from support.measured_records import record, result

VOID = {"img"}
RACE = """
__global__ void race(float *a) {
  __shared__ float s[64];
  s[threadIdx.x] = a[threadIdx.x];
  a[threadIdx.x] = s[63 - threadIdx.x];
}
"""


ONES = """
__global__ void ones(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < M * N) C[i] = 1.0f;
}
"""


class Elements(HTMLParser):
    """The elements of a text; an end without its beginning fails."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def elements(html: str) -> Elements:
    found = Elements()
    found.feed(html)
    found.close()
    assert found.open == []
    return found


@cache
def climb() -> Record:
    found = recorded_climb("gemm")
    assert found is not None
    return found


def raced() -> Any:
    return gemmlab.launch(RACE, "race", 1, 64, [np.ones(64, np.float32)], device="emulated")


RESULTS: dict[str, Callable[[], Any]] = {
    "launch": raced,
    "counters": lambda: raced().counters,
    "artifact": lambda: raced().artifact,
    "explained launch": lambda: raced().explain(),
    "check": lambda: gemmlab.check("naive", sizes=5, device="emulated"),
    "report": lambda: gemmlab.check("naive", sizes=5, device="emulated").reports[0],
    "bench": lambda: gemmlab.bench("naive", sizes=32, device="emulated"),
    "row of counts": lambda: gemmlab.bench("naive", sizes=32, device="emulated").counts[0],
    "summary": lambda: summarise(climb()),
    "row of a summary": lambda: summarise(climb()).rows[0],
    "explain": lambda: gemmlab.explain("naive", sizes=64),
    "explain two": lambda: gemmlab.explain("naive", "block_tile", sizes=64),
    "explanation": lambda: gemmlab.explain("naive", sizes=64).explanations[0],
    "finding": lambda: gemmlab.explain("naive", sizes=64).findings[0],
    "picture": lambda: gemmlab.explain("naive", sizes=64).pictures("lane_map")[0],
    "profile": lambda: gemmlab.profile(load="h200"),
    "one profile": lambda: gemmlab.profile(load="h200").profiles.profiles[0],
    "choice": lambda: gemmlab.explain_choice((512, 512), (512, 512), device="H200"),
    "candidate": lambda: gemmlab.explain_choice((512, 512), (512, 512), device="H200").considered[0],
    "record": climb,
    "one result": lambda: climb().results[0],
    "comparison": lambda: gemmlab.compare(climb(), climb()),
}


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.sampled(99)
def test_a_result_has_a_short_repr_and_whole_html(name: str) -> None:
    found = RESULTS[name]()
    assert isinstance(found, Display)
    assert repr(found).startswith(f"<{type(found).__name__} ")
    assert len(repr(found)) < 300
    assert "\n" not in repr(found)
    html = found._repr_html_()
    there = elements(html)
    assert there.names.isdisjoint({"script", "link", "iframe", "object"})
    assert [name for name, _ in there.attributes if name.startswith("on")] == []
    assert [
        value for name, value in there.attributes if name in {"src", "href"} and not str(value).startswith("data:")
    ] == []
    assert len(html) < 400_000


@pytest.mark.in_turns(20)
@needs_compiler
def test_each_finding_has_its_predicted_gain() -> None:
    found = gemmlab.explain("naive_strided", sizes=64)
    html = found._repr_html_()
    assert "predicted gain" in html
    assert {one.gain_pct is None for one in found.findings} == {True, False}
    for one in found.findings:
        assert f">{one.gain_words}<" in html
        assert one.gain in one._repr_html_()


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_check_that_fails_begins_with_the_verdict() -> None:
    facts = {"grid": "ceil_div(M * N, 64)", "threads": "64"}
    found = gemmlab.check(ONES, sizes=5, device="emulated", facts=facts)
    html = found._repr_html_()
    assert not found.passed
    assert html.index(str(found.reports[0].verdict)) < html.index("<table")


@needs_compiler
def test_a_line_says_what_is_known() -> None:
    counted = repr(gemmlab.bench("naive", sizes=32, device="emulated"))
    assert counted.startswith("<BenchResult gemm on emulated sm_90: naive at 32x32x32: ")
    assert counted.endswith(" shared wavefronts>")
    assert repr(gemmlab.explain_choice((64, 64), (64, 64))).startswith("<Choice threaded for 64x64x64")
    assert "=0" not in repr(gemmlab.explain_choice((512, 512), (512, 512), device="H200"))


@needs_compiler
@pytest.mark.slow
def test_a_climb_and_its_charts() -> None:
    found = gemmlab.climb("reduce", device="cpu", sizes=4096, quick=True, peers="")
    assert len(repr(found)) < 300
    assert "data:image/svg+xml" in found._repr_html_()
    elements(found._repr_html_())


def test_text_of_a_record_never_acts_as_markup() -> None:
    bad = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\ud800"
    html = record(result(f"kernel:{bad}", [[1.0] * 3], label=f'"{bad}'), notes=(bad,))._repr_html_()
    there = elements(html)
    assert "script" not in there.names
    assert "img" not in there.names
    assert "\x1b" not in html
    html.encode("utf-8")


def test_hazards_and_wrong_results_are_red() -> None:
    good, bad = View("t", "PASS", good=True).html(), View("t", "FAIL", good=False).html()
    assert '<span class="gv-badge gv-good">PASS</span>' in good
    assert '<span class="gv-badge gv-bad">FAIL</span>' in bad
    assert (
        '<td class="gv-wrong">FAIL</td>'
        in View("t", grids=(Grid(("a",), (("FAIL",),), wrong=frozenset({(0, 0)})),)).html()
    )


def test_a_long_table_is_cut_and_says_so() -> None:
    html = View("t", grids=(grid(("n",), ((n,) for n in range(MOST_ROWS + 7))),)).html()
    assert html.count("<tr>") == MOST_ROWS + 1
    assert "and 7 more" in html


def test_a_long_line_loses_its_middle() -> None:
    line = short("a" * 500 + "z" * 500)
    assert len(line) == LONGEST
    assert line.startswith("<aaa")
    assert line.endswith("zzz>")
    assert short("two\nlines") == "<two lines>"


def test_cells() -> None:
    values = (None, True, 12345, 1.23456, 123456.7, "x")
    assert [cell(value) for value in values] == ["", "yes", "12,345", "1.235", "123,457", "x"]


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_wrong_kernel_shows_why() -> None:
    found = raced()
    assert "HAZARDS" in found._repr_html_()
    assert "race" in found._repr_html_()
