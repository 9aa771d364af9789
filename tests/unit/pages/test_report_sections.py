"""Sections of kernels: what is joined to what, what is explained, and what is kept of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.kernels.catalog import find_kernel
from gemmlab.pages import study_cache as kept
from gemmlab.pages.charts import Drawing
from gemmlab.pages.kernel_results import request_for, results_by_kernel
from gemmlab.pages.page import Page, render
from gemmlab.pages.roofs import roof_drawings
from gemmlab.pages.studies import Request, Study, study
from support.cuda_source import needs_compiler
from support.paths import ROOT
from support.report_pages import Parsed, page_of, sections_of
from support.report_records import gpu_bench, result


@pytest.fixture(scope="module")
def naive() -> Study:
    """`naive` as it is now; without its pictures, which have tests of their own."""
    found = study(Request("naive", (("BM", 32), ("BN", 32)), "sm_90", "H200"))
    assert isinstance(found, Study), found
    assert len(found.drawings) > 1
    return replace(found, drawings=found.drawings[:1])


def digest_of(found: Study) -> str:
    assert found.explanation is not None
    return str(found.explanation["code_sha256"])


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_same_code_is_joined_to_its_times(naive: Study) -> None:
    record = gpu_bench(digest_of(naive))
    page = page_of(record, outcomes={"naive": naive})
    (told,) = (one for one in page.sections if one.id == "naive")
    assert told.same == ("timed on NVIDIA H200, 2026-11-21",)
    assert told.other == ()
    assert told.measured == pytest.approx(6000)
    wrong = replace(record, results=tuple(replace(one, verified=False) for one in record.results))
    (off,) = (one for one in page_of(wrong, outcomes={"naive": naive}).sections if one.id == "naive")
    assert off.measured is None, "a wrong answer has no speed"
    shown = Parsed(render(page)).shown
    assert "The same code as timed on NVIDIA H200, 2026-11-21." in shown
    assert re.search(r"6000 GFLOP/s \d+\.\d% PASS", shown)
    assert "so the two say nothing about each other" not in shown
    assert "Findings, the costliest first" in shown
    assert re.search(r"Predicted, not measured [\d.]+ ms at 4096³ on H200, \d+ GFLOP/s; most of it: ", shown)
    assert "LDG.E" in shown


@pytest.mark.in_turns(20)
@needs_compiler
def test_measured_is_shown_at_the_predicted_size_too(naive: Study) -> None:
    config = dict(naive.explanation["config"]) if naive.explanation else {}
    record = gpu_bench(digest_of(naive), 1024, 4096, 8192, config=config)
    (told,) = (one for one in page_of(record, outcomes={"naive": naive}).sections if one.id == "naive")
    assert [row[2].text for row in told.table.rows] == ["4096³", "8192³"]
    other = gpu_bench(digest_of(naive), 1024, 4096, 8192, config={"BM": 1})
    (told,) = (one for one in page_of(other, outcomes={"naive": naive}).sections if one.id == "naive")
    assert [row[2].text for row in told.table.rows] == ["8192³"]
    (told,) = (one for one in page_of(record).sections if one.id == "naive")
    assert [row[2].text for row in told.table.rows] == ["8192³"], "nothing is predicted"


@pytest.mark.in_turns(20)
@needs_compiler
def test_other_code_is_told_apart_and_joined_to_nothing(naive: Study) -> None:
    page = page_of(gpu_bench("0" * 64, compiler="NVRTC 13.0.88"), outcomes={"naive": naive})
    (told,) = (one for one in page.sections if one.id == "naive")
    assert told.same == ()
    assert told.measured is None
    assert naive.explanation is not None
    here = naive.explanation["compiler"]
    assert told.other == (f"timed on NVIDIA H200, 2026-11-21: {'0' * 12}, compiler NVRTC 13.0.88, here {here}",)
    shown = Parsed(render(page)).shown
    assert "so the two say nothing about each other" in shown
    assert re.search(r"6000 GFLOP/s PASS", shown)
    changed = page_of(gpu_bench("0" * 64, compiler=here), outcomes={"naive": naive})
    assert "its file or a header has changed since" in Parsed(render(changed)).shown
    moved = replace(gpu_bench(digest_of(naive)), device={"id": "cuda:0", "name": "NVIDIA L4"})
    (elsewhere,) = (one for one in page_of(moved, outcomes={"naive": naive}).sections if one.id == "naive")
    assert elsewhere.same
    assert elsewhere.measured is None, "explained for an H200"


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_roofline_has_measured_speeds_of_the_same_code_only(naive: Study) -> None:
    for digest, speed in ((digest_of(naive), 6.0), ("0" * 64, None)):
        (drawing,) = roof_drawings(sections_of((gpu_bench(digest),), {"naive": naive}))
        layer = next(layer for layer in drawing.spec["layer"] if "shape" in layer["encoding"])
        marks = drawing.spec["datasets"][layer["data"]["name"]]
        assert {mark["kernel"] for mark in marks} == {"naive"}
        assert {mark["level"] for mark in marks} == {"L1", "L2", "DRAM"}
        assert all((mark["y"] == pytest.approx(6.0)) is (speed is not None) for mark in marks)
        assert ("are measured" in drawing.caption) is (speed is not None)


def test_what_is_explained_is_what_was_timed() -> None:
    seen = results_by_kernel([gpu_bench("0" * 64)])
    asked = request_for(find_kernel("naive"), "naive", seen["naive"], "")
    assert asked == Request("naive", (("BM", 32), ("BN", 32), ("UNROLL", 16)), "sm_90", "H200")
    # Code of an architecture that the chosen GPU does not run gives way.
    assert request_for(find_kernel("naive"), "naive", seen["naive"], "L4") == replace(asked, arch="", gpu="L4")
    assert request_for(find_kernel("naive"), "naive", [], "") == Request("naive")
    plain = results_by_kernel([gpu_bench("0" * 64, config={}, target="sm_80")])["naive"]
    assert request_for(find_kernel("naive"), "naive", plain, "A100") == Request("naive", (), "sm_80", "A100")


def test_what_cannot_be_explained_says_why() -> None:
    found = study(Request("naive", (("NO_SUCH", 1),), "sm_90"))
    assert isinstance(found, str)
    assert "unknown parameter 'NO_SUCH'" in found
    shown = Parsed(render(page_of(gpu_bench(), outcomes={"naive": found}))).shown
    assert f"Not explained: {found}" in shown


def test_a_kernel_that_nobody_knows_is_told_from_its_record() -> None:
    (told,) = sections_of((replace(gpu_bench(), results=(result("kernel:mine", "rung", 64, 1.0, idea="an idea"),)),))
    assert told.kernel is None
    shown = Parsed(render(Page([], [told]))).shown
    assert "No kernel of this name is known here" in shown
    assert "an idea" in shown


def test_studies_are_kept_until_their_code_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "cache"))
    asked = Request("naive", (("BM", 32),), "sm_90", "H200")
    made = Study(
        {"op": "gemm", "steps": [1, 2.5, None]},
        (("a", "b", "c"),),
        ("h",),
        {"speed": 1.5},
        (Drawing("t", "c", {"x": [1]}),),
    )
    code = "one"
    monkeypatch.setattr(kept, "_sources", type("Seen", (), {"fingerprint": lambda _self: code}))
    assert kept.recall(asked) is None
    kept.keep(asked, made)
    assert kept.recall(asked) == made
    assert kept.recall(replace(asked, gpu="L4")) is None
    own = replace(asked, kernel="mine.cu")
    kept.keep(own, made)
    assert kept.recall(own) is None, "what such a file includes is not known"
    (path,) = (tmp_path / "cache" / "studies").iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    assert kept.recall(asked) is None
    code = "two"
    kept.keep(asked, made)
    assert [other.name[:16] for other in path.parent.iterdir()] != [path.name[:16]]
    assert kept.recall(asked) == made
    code = ""
    assert kept.recall(asked) is None, "sources that changed under a running process"


def test_a_study_depends_on_every_room_that_it_could_depend_on() -> None:
    package = ROOT / "src" / "gemmlab"
    folders = {path.relative_to(package).parts[0] for path in kept.source_files(package)}
    rooms = {path.name for path in package.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert rooms - folders == {"blas", "cli", "torch"}
