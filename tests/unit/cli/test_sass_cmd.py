"""`gemmlab sass`: listings as text, JSON and pages; comparisons; cubins; errors that say what would be right."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from support.cuda_source import compiled, needs_compiler
from support.page_kernels import GRID, THREADS, user_file

pytestmark = needs_compiler

OWN = ("--grid", GRID, "--threads", THREADS)


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(build_app(), ["sass", *words])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.output


def test_a_listing_names_places_and_control_codes() -> None:
    text = run("naive")
    assert re.search(r"sm_90 code \(.+\), \d+ instructions, 32 registers a thread", text)
    assert "; tile.cuh:15 called from naive.cu:" in text
    assert re.search(r"; loop 0x[0-9a-f]+ to 0x[0-9a-f]+, depth 1", text)
    assert re.search(r"  0x\w+  --:-:2:-:1 +\d+ .*LDG\.E R\d+", text)


@pytest.mark.in_turns(20)
def test_counts_and_ptx_are_shown_when_asked_for() -> None:
    text = run("naive", "--counts", "--ptx", "--loops", "--sizes", "64")
    assert "counted: at 64x64x64 on emulated:sm_90, not timed" in text
    assert re.search(r";     ptx \d+: ld\.global", text)
    (line,) = [line for line in text.splitlines() if re.search(r"\| LDC R5", line)]
    # 4 blocks of 32 warps, 4 iterations.
    assert re.search(r" {3,}512 +32\.0 ", line)


@pytest.mark.in_turns(20)
def test_code_without_ptx_says_so() -> None:
    assert "; the code carries no PTX" in run("peak_simt", "--ptx")
    assert "no PTX" not in run("naive", "--ptx")


@pytest.mark.in_turns(20)
def test_json_has_every_field_of_an_instruction() -> None:
    found = json.loads(run("reduce_shuffle", "--arch", "sm_80", "--json"))
    assert found["arch"] == "sm_80"
    barrier = next(one for one in found["instructions"] if one["text"].startswith("BAR"))
    assert {"address", "stall", "yield", "waits", "reuse", "places", "live", "banks", "depth", "loop"} <= set(barrier)
    assert barrier["write_barrier"] is None


@pytest.mark.in_turns(20)
def test_a_comparison_says_what_differs() -> None:
    text = run("naive", "--diff", "UNROLL=8")
    assert "... " in text
    same, changed, left, right = map(int, re.findall(r"([\d,]+) (?:alike|changed|only)", text)[-4:])
    assert same > 50
    assert left > right, "less is unrolled at the right"
    assert changed + left + right > 10
    found = json.loads(run("naive", "--diff", "arch=sm_80", "--json"))
    assert [found[side]["arch"] for side in ("left", "right")] == ["sm_90", "sm_80"]
    assert len([pair for pair in found["pairs"] if pair[0] is not None]) == len(found["left"]["instructions"])


@pytest.mark.in_turns(20)
def test_a_file_needs_no_launch_to_be_listed(tmp_path: Path) -> None:
    path = user_file(tmp_path)
    assert "helper.cuh:3 called from mine.cu:8" in run(str(path))
    answer = run(str(path), "--counts", code=2)
    assert "state --grid and --threads" in answer
    assert "explained for: H200" in run(str(path), *OWN, "--counts")


@pytest.mark.in_turns(20)
def test_a_cubin_is_listed_by_its_only_kernel(tmp_path: Path) -> None:
    two = "__global__ void one(float* x) { x[0] = 1.0f; }\n__global__ void two(float* x) { x[1] = 2.0f; }\n"
    artifact = compiled(two, "two")
    path = tmp_path / "two.cubin"
    path.write_bytes(artifact.code)
    assert "say which with --kernel: two, one" in run(str(path), code=2)
    assert "a ready cubin" in run(str(path), "--kernel", "two")
    assert "--counts" in run(str(path), "--counts", code=2)
    assert "is code for sm_90, not for sm_80" in run(str(path), "--arch", "sm_80", "--kernel", "two", code=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("naive", "--diff", "sm_80"), "--diff 'sm_80': write NAME=VALUE"),
        (("naive", "--arch", "hopper"), "--arch hopper: write an architecture"),
        (("naive", "--sizes", "64"), "--sizes belongs to --counts"),
        (("packed",), "packed is a kernel for cpu"),
        (("naive", "--html", "/nowhere/page.html"), "the folder /nowhere does not exist"),
        (("nive",), "did you mean naive"),
    ],
)
def test_an_error_says_what_would_be_right(words: tuple[str, ...], said: str) -> None:
    assert said in run(*words, code=2)


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run("naive", "--diff", "arch=sm_80", "--html", str(page))
    text = page.read_text()
    assert "default-src &#39;none&#39;" in text
    assert text.count('id="listing-') == 2
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)


@pytest.mark.in_turns(20)
def test_explain_writes_the_same_page_with_counts(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = CliRunner().invoke(build_app(), ["explain", str(user_file(tmp_path)), *OWN, "--html", str(page)])
    assert result.exit_code == 1, "it has a race"
    text = page.read_text()
    assert "Hazards and findings" in text
    assert str(tmp_path) not in text, "names without folders"
    refused = CliRunner().invoke(build_app(), ["explain", "naive", "--profile", "x.csv"])
    assert "--profile needs --html" in refused.output
