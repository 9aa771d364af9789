"""Pages as files: what is on them, what is text in them, and what is joined to what."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.core.errors import RecordError
from gemmlab.core.numerals import plain
from gemmlab.core.records import Record, load_record
from gemmlab.pages.charts import curve_drawings, ladder_drawing
from gemmlab.pages.document import coded
from gemmlab.pages.page import Page, render
from gemmlab.pages.parts import part_of
from gemmlab.plots.chart import BLACK
from support.paths import CPU, RESULTS
from support.report_pages import ELEMENTS, Parsed, page_of
from support.report_records import GPU, HOSTILE, SEEN, gpu_bench, hostile_record, result


@pytest.mark.in_turns(20)
def test_a_page_is_whole_and_names_by_digest_what_may_run() -> None:
    page = Parsed(render(page_of(gpu_bench())))
    (policy,) = (a["content"] or "" for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    inline = [text for text in page.raw["script"] if len(text) > 1000 and not re.fullmatch(r"[\w+/=]+", text)]
    assert len(inline) == 2
    assert len(page.raw["style"]) == 1
    for kind, texts in (("script-src", inline), ("style-src", page.raw["style"])):
        allowed = re.search(rf"{kind} ([^;]+);", policy)
        assert allowed is not None
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert allowed[1].split() == [f"'sha256-{digest}'" for digest in digests]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, attributes in page.elements:
        assert tag in ELEMENTS
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "style", "action")}
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in page.raw["style"][0]
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {(attributes.get("href") or "#")[1:] for tag, attributes in page.elements if tag == "a"}
    assert targets
    assert targets <= set(ids)


@pytest.mark.in_turns(20)
def test_hostile_strings_are_text() -> None:
    raw = render(page_of(hostile_record()))
    page = Parsed(raw)
    assert {tag for tag, _ in page.elements} <= ELEMENTS
    calm = Parsed(render(page_of(gpu_bench())))
    scripts = [a for tag, a in page.elements if tag == "script" and a.get("type") is None]
    assert len(scripts) == len([a for tag, a in calm.elements if tag == "script" and a.get("type") is None]) == 2
    # Each way by which a string comes to the page: names, sizes, ideas, counters, notes, libraries, environment.
    assert page.shown.count(re.sub(r"\s+", " ", HOSTILE)) > 25
    assert HOSTILE.encode() not in raw
    assert b"alert(2)>" not in raw
    assert "?" in page.shown  # what became of half a surrogate pair


@pytest.mark.in_turns(20)
def test_charts_hold_what_records_say_and_nothing_that_ends_their_element() -> None:
    page = Parsed(render(page_of(hostile_record())))
    packed = [text for text in page.raw["script"] if re.fullmatch(r"[\w+/=]+", text)]
    specs = [json.loads(zlib.decompress(base64.b64decode(text))) for text in packed]
    assert len(specs) == len([a for tag, a in page.elements if tag == "figure"]) >= 1
    series = {row.get("series") for spec in specs for rows in spec["datasets"].values() for row in rows}
    assert {HOSTILE, "__proto__"} <= series


def test_a_part_says_what_is_best_and_how_it_was_measured() -> None:
    shown = Parsed(render(page_of(gpu_bench()))).shown
    assert "vector_load reaches 36000 GFLOP/s at 1024³, 55.4% of the peak probed beside it, 0.71 x cublas." in shown
    for wanted in ("NVIDIA H200, cuda:0", "580.1", "core 1980 MHz, memory 3201 MHz", "3 in each of 1 process",
                   "caches are written over", "cuBLAS 13.1", "2026-11-21"):  # fmt: skip
        assert wanted in shown, wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (f"{CPU}/climb.json", ["microkernel", "x openblas", "2048³", "The ladder"]),
        (f"{CPU}/cache.json", ["TLB misses", "naive_ijk"]),
        ("emulated/reduce.json", ["reduce_shuffle", "of them excess", "Counted, not timed, on emulated:sm_90"]),
        ("h200/configs-swizzle.json", ["median ms of each configuration", "ORDER=2 GROUP=16"]),
    ],
)
def test_records_of_every_kind_have_a_table(name: str, wanted: list[str]) -> None:
    shown = Parsed(render(Page([part_of(Path(name), load_record(RESULTS / name))], []))).shown
    for text in wanted:
        assert text in shown, text


def test_a_check_without_times_shows_what_was_right() -> None:
    results = (replace(result("kernel:naive", "rung", 64, 1.0), samples=(), verified=False, notes=("row 3 is off",)),)
    shown = Parsed(render(page_of(Record("check", "gemm", SEEN, GPU, None, results)))).shown
    assert "FAIL" in shown
    assert "row 3 is off" in shown


def test_facts_that_make_no_sense_are_told_with_the_file() -> None:
    bad = replace(gpu_bench(), kind="cache")
    with pytest.raises(RecordError, match=r"bad\.json: facts that cannot be used \(KeyError"):
        part_of(Path("bad.json"), bad)


def test_a_record_of_an_operation_that_is_not_known_here_is_shown() -> None:
    shown = Parsed(render(page_of(replace(gpu_bench(), op="somebodys_softmax")))).shown
    assert "GFLOP/s" in shown


def test_curves_answer_to_the_pointer_and_start_with_peers() -> None:
    (drawing,) = curve_drawings(gpu_bench())
    lines, points = (
        next(layer for layer in drawing.spec["layer"] if layer["mark"]["type"] == mark and "color" in layer["encoding"])
        for mark in ("line", "point")
    )
    colours = lines["encoding"]["color"]["scale"]
    assert colours["domain"] == ["cublas", "vector_load", "block_tile", "naive"]
    assert colours["range"][0] == BLACK
    assert len(set(colours["range"])) == 4
    assert [one["name"] for one in points["params"]] == ["near", "chosen"]
    assert points["params"][1]["bind"] == "legend"
    assert [one["field"] for one in points["encoding"]["tooltip"]] == ["series", "size", "speed", "low", "high"]
    assert points["encoding"]["y"]["title"] == "TFLOP/s (float32)"


def test_the_ladder_of_a_bench_is_at_the_largest_size_of_all() -> None:
    record = gpu_bench()
    drawing = ladder_drawing(replace(record, results=(*record.results, result("kernel:naive", "rung", 2048, 6.0))))
    assert drawing is not None
    assert drawing.title == "The ladder at 1024³"
    assert ladder_drawing(replace(record, results=record.results[:2])) is None


def test_the_ladder_of_a_climb_tells_a_size_that_all_have_in_its_title() -> None:
    climb = replace(gpu_bench("", 512), kind="climb")
    drawing = ladder_drawing(climb)
    assert drawing is not None
    assert (drawing.title, drawing.caption) == ("The ladder at 512³", "")
    mixed = ladder_drawing(replace(climb, results=(*climb.results, result("kernel:warp_tile", "rung", 256, 40.0))))
    assert mixed is not None
    assert (mixed.title, mixed.caption) == (
        "The ladder",
        "One bar per entry, at the size in its label, else at 512³.",
    )


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (41340.4, 4, "41,340"),
        (9999.7, 4, "10,000"),
        (2310.2, 4, "2,310"),
        (0.1234567, 4, "0.1235"),
        (1234.5, 3, "1,234"),
    ],
)
def test_numbers_of_tables_have_no_exponent(value: float, digits: int, shown: str) -> None:
    assert plain(value, digits) == shown


def test_code_in_advice_stays_text() -> None:
    assert str(coded("Use `a<b>` & `c")) == "Use <code>a&lt;b&gt;</code> &amp; <code>c</code>"


def test_words_of_a_page_are_escaped_once() -> None:
    record = replace(gpu_bench(), device={**GPU, "name": "Q&A <1>"})
    raw = render(page_of(record)).decode()
    assert "Q&amp;A &lt;1&gt;" in raw
    assert "&amp;amp;" not in raw
    assert html.escape("Q&A <1>") in raw
