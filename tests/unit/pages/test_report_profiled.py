"""Profiles on a page: what warps waited for, the library beside it, and whose code it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gemmlab.kernels.catalog import find_kernel
from gemmlab.observe.profile import Profile, Profiles
from gemmlab.pages.page import Page, render
from gemmlab.pages.profile_section import profiled, stall_drawings
from gemmlab.pages.sections import section
from support.report_pages import Parsed

CYCLES = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def profile(contestant: str, size: str, waits: float, **facts: Any) -> Profile:
    metrics = {
        CYCLES.format("long_scoreboard"): waits,
        CYCLES.format("selected"): 1.0,
        "smsp__issue_active.avg.pct_of_peak_sustained_active": 40.0,
        "launch__registers_per_thread": 32.0,
    }
    return Profile(contestant, size, ("a_function",), facts, {}, metrics)


@pytest.fixture
def seen() -> Profiles:
    return Profiles(
        "gemm", "NVIDIA H200", "sm_90", "Version 2025 <b>", "2026-11-21T15:23:12Z",
        (
            profile("kernel:naive", "512x512x512", 7.0, code_sha256="a" * 64),
            profile("kernel:naive", "2048x2048x2048", 9.0, code_sha256="a" * 64),
            profile("cublas", "2048x2048x2048", 0.25),
            replace(profile("kernel:naive", "4096x4096x4096", 1.0), kernels=(), notes=("it did not run",)),
        ),
    )  # fmt: skip


def test_the_largest_size_that_ran_is_shown_with_the_library_beside_it(seen: Profiles) -> None:
    (found,) = profiled("naive", find_kernel("naive"), [seen], None)
    assert found.where == "By Nsight Compute (Version 2025 <b>) on NVIDIA H200, 2026-11-21, at 2048³"
    assert found.stalls.headings[4] == "cublas: of a warp's time"
    cells = [[cell.text for cell in row] for row in found.stalls.rows]
    assert cells[0][:5] == ["long scoreboard", "9", "90.0%", "60", "20.0%"]
    assert cells[0][5].startswith("The warp needs what it asked of L1")
    assert [row[0] for row in cells] == ["long scoreboard", "selected"]
    assert [finding.rung for finding in found.findings] == ["block_tile"]
    assert profiled("block_tile", None, [seen], None) == ()


def test_profiled_code_that_is_not_the_explained_code_is_told(seen: Profiles) -> None:
    for digest, told in (("a" * 64, ""), ("b" * 64, "a" * 12)):
        (found,) = profiled("naive", None, [seen], {"code_sha256": digest})
        assert found.other_code == told


def test_a_section_shows_it_as_text(seen: Profiles) -> None:
    one = section("naive", find_kernel("naive"), [], None, [seen])
    raw = render(Page([], [one], tuple(stall_drawings([seen]))))
    assert b"2025 <b>" not in raw
    shown = Parsed(raw).shown
    for wanted in ("What its warps wait for", "Version 2025 <b>", "long scoreboard", "registers a thread",
                   "What warps wait for at 2048³", "Shown by: block_tile",
                   "90 % of a warp's time is long scoreboard ,"):  # fmt: skip
        assert wanted in shown, wanted


def test_bars_are_of_the_largest_size(seen: Profiles) -> None:
    (drawing,) = stall_drawings([seen])
    rows = [row for rows in drawing.spec["datasets"].values() for row in rows]
    assert {row["name"] for row in rows} == {"naive", "cublas"}
    assert max(row["cycles"] for row in rows) == pytest.approx(10.0)
    counted = replace(seen, profiles=tuple(replace(one, metrics={}) for one in seen.profiles))
    assert list(stall_drawings([counted])) == []


def test_bars_are_of_the_kernels_that_were_asked_for_and_the_library(seen: Profiles) -> None:
    other = profile("kernel:mine", "2048x2048x2048", 2.0)
    far = profile("cublas", "8192x8192x8192", 2.0)
    seen = replace(seen, profiles=(*seen.profiles, other, far))
    (drawing,) = stall_drawings([seen], {"mine"})
    rows = [row for rows in drawing.spec["datasets"].values() for row in rows]
    assert {row["name"] for row in rows} == {"mine", "cublas"}
    assert drawing.title == "What warps wait for at 2048³"
    assert list(stall_drawings([seen], {"block_tile"})) == []
