"""Faults that races follow from are named before them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmlab.core.hazard import BARRIER, OUTSIDE, RACE, Hazard
from gemmlab.core.hazard_source import shared_extents
from gemmlab.core.missing_barrier import lines_of, missing_barriers
from gemmlab.core.race_causes import faulty_barrier, leading_kind, same_element
from gemmlab.devices.select import open_device
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport
from gemmlab.verify.leading_lines import lines_without
from support.cuda_source import needs_compiler
from support.racing_kernel import RACE as TEXT


def checked(tmp_path: Path, *edits: tuple[str, str], text: str = TEXT) -> CheckReport:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "race.cu"
    path.write_text(text, encoding="utf-8")
    return check_kernel(user_kernel(path), open_device("emulated"), GemmOp())


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("condition", ["x < 16", "y < 4"], ids=["of a warp", "of whole warps"])
def test_a_barrier_under_a_condition_is_named_before_the_races(tmp_path: Path, condition: str) -> None:
    barrier = "__syncthreads();  // FIRST"
    report = checked(tmp_path, (barrier, f"if ({condition}) {barrier}"))
    text = str(report.verdict)
    assert text.startswith("BARRIER: not all threads reach the barrier at race.cu:16: it stands under a condition")
    races = [line for line in report.details().splitlines() if line.startswith("  in ") and " race at " in line]
    assert ("race because of that" in text) == bool(races) == (condition == "y < 4")
    follows = "; it follows from the barrier at race.cu:16, which not all threads reach"
    assert all(line.endswith(follows) for line in races)
    assert "put __sync" not in report.details()
    assert ";  orders" not in report.details()


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_shared_array_that_is_too_small_is_named_as_it_is_declared(tmp_path: Path) -> None:
    report = checked(tmp_path, ("Bs[32][32]", "Bs[31][32]"))
    assert str(report.verdict).startswith(
        "OUT OF BOUNDS: Bs, declared as Bs[31][32], is written outside its bounds at race.cu:15"
    )
    told = [line for line in report.details().splitlines() if line.startswith("  in ")]
    assert "out of bounds at " in told[0]
    assert ";  orders" not in report.details()


@pytest.mark.in_turns(20)
@needs_compiler
def test_an_index_past_the_end_of_a_row_lacks_no_barrier(tmp_path: Path) -> None:
    report = checked(tmp_path, ("As[8][32]", "As[8][16]"))
    said = "two threads write the same element: As is declared as As[8][16], so an index goes past the end of a row"
    assert said in str(report.verdict)
    (line,) = (one for one in report.details().splitlines() if one.startswith("  in ") and said in one)
    assert "__syncthreads" not in line


def race(line: int, other: int, message: str = "4-byte read (LDS) and an access (STS) with no barrier") -> Hazard:
    return Hazard(
        kind=RACE, kernel="k", block=(0, 0, 0), thread=(0, 0, 0), address=0, file="k.cu", line=line, other_line=other,
        space="shared", array="s", message=message,
    )  # fmt: skip


STORES = "4-byte write of shared memory (STS) and an access by thread (1, 0, 0) (STS) with no barrier between"


def test_the_kind_that_others_follow_from() -> None:
    outside = Hazard(OUTSIDE, "k", (0, 0, 0), (0, 0, 0), 0, space="shared")
    elsewhere = Hazard(OUTSIDE, "k", (0, 0, 0), (0, 0, 0), 0, space="global")
    divergent = Hazard(
        BARRIER, "k", (0, 0, 0), (0, 0, 0), None, "k.cu", 5, message="a barrier in divergent code: not all reach it"
    )
    assert leading_kind([[race(1, 2), outside]], RACE) == OUTSIDE
    assert leading_kind([[race(1, 2), divergent]], RACE) == BARRIER
    assert leading_kind([[race(1, 2), elsewhere]], RACE) == RACE
    assert faulty_barrier([race(1, 2), divergent], lambda _file: "") == ("k.cu", 5)


@pytest.mark.parametrize(
    ("between", "at"),
    [
        ("if (t < 8) __syncthreads();", 2),
        ("if (t < 8)\n__syncthreads();", 3),
        ("if (t < 8) {\n__syncthreads(); }", 3),
        ("__syncthreads();", 0),
        ("if (t < 8) f();\n__syncthreads();", 0),
    ],
)
def test_a_barrier_behind_an_if_between_the_lines_of_a_race(between: str, at: int) -> None:
    text = f"s[t] = 1;\n{between}\nx = s[t + 1];"
    found = faulty_barrier([race(1, text.count("\n") + 1)], lambda _file: text)
    assert found == (("k.cu", at) if at else None)


def test_stores_of_one_line_in_rounds_that_no_barrier_parts_may_lack_one() -> None:
    in_loop = "__shared__ float s[8];\nfor (;;) {\ns[f(t)] = 1;\n@\n}"
    assert same_element(race(3, 3, STORES), lambda _file: in_loop.replace("@", "g();")) == ""
    assert "s[8]" in same_element(race(3, 3, STORES), lambda _file: in_loop.replace("@", "__syncthreads();"))
    assert same_element(race(3, 4, STORES), lambda _file: in_loop.replace("@", "__syncthreads();")) == ""


def test_a_race_of_warps_at_the_same_lines_needs_the_barrier_of_the_block() -> None:
    lanes = race(1, 2, "an access (STS) with no warp-level synchronisation between: __syncwarp() is missing")
    warps = race(1, 2, "an access (STS) with no barrier between: __syncthreads() is missing")
    for order in ([lanes, warps], [warps, lanes]):
        assert missing_barriers(order, lambda _file: "")[lines_of(lanes)].startswith("__syncthreads() between line 1")
    assert missing_barriers([lanes], lambda _file: "")[lines_of(lanes)].startswith("__syncwarp() between line 1")


def test_shared_variables_are_found_with_their_extents() -> None:
    text = "__shared__ __align__(16) float As[16][8], Bs[4]; extern __shared__ float all[]; __shared__ int count;"
    assert shared_extents(text) == {"As": "[16][8]", "Bs": "[4]", "all": "[]", "count": ""}


def test_subscripts_without_the_leading_dimension() -> None:
    text = "sum += A[row * lda + k]\n  * B[k * N + col];\nb = B[k * ldb + col] + B[col];\nc = B[f[k] * N];"
    assert lines_without(text, "b") == [2, 4]
    assert lines_without(text, "a") == []


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_leading_dimension_that_is_not_used_has_its_line(tmp_path: Path) -> None:
    text = TEXT.replace("const float* B,", "const float* B, int ldb,")
    report = checked(tmp_path, text=text)
    assert str(report.verdict) == "WRONG: passes where ldb is the length of a row (race.cu:15 indexes B without ldb)"
    # NaN comes from behind the ends of rows of B, not from C.
    assert "c[0, 0] = nan" in report.details()
    assert "held NaN before the call" not in report.details()
