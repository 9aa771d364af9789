"""Races: the verdict names the arrays, and the place of the barrier that is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.core.hazard import TWO_WRITES, Hazard
from gemmlab.core.missing_barrier import lines_of, missing_barriers
from gemmlab.devices.select import open_device
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler
from support.edited_file import edited
from support.racing_kernel import RACE

OP = GemmOp()


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("without", "place"),
    [
        ("FIRST", "missing in race.cu: __syncthreads() between line 15 and line 17"),
        ("SECOND", "missing in race.cu: __syncthreads() in the loop at lines 12-19, after line 17 and before line 13"),
    ],
)
def test_a_race_names_the_arrays_and_the_place_of_the_missing_barrier(tmp_path: Path, without: str, place: str) -> None:
    path = tmp_path / "race.cu"
    path.write_text(RACE.replace(f"__syncthreads();  // {without}", f"// no __syncthreads() {without}"))
    report = check_kernel(user_kernel(path), open_device("emulated"), OP)
    text = str(report.verdict)
    assert text.startswith("RACE: threads access ")
    assert "Bs" in text
    assert place in text
    # As and Bs race, and the one barrier is named as one.
    told = [line for line in report.explain().splitlines() if line.startswith("  in ") and "()" in line]
    barrier = text.partition("missing in race.cu: ")[2].partition(";")[0]
    assert len(told) == 2
    assert told[0].endswith(f"; put {barrier}")
    assert told[1].endswith(f"; {barrier} orders these accesses, too")


@pytest.mark.in_turns(20)
@needs_compiler
def test_an_element_that_two_threads_write_lacks_no_barrier(tmp_path: Path) -> None:
    report = edited(tmp_path, ("static_cast<long long>(row) * ldc", "static_cast<long long>(row - row % 16) * ldc"))
    assert f"{TWO_WRITES}; " in f"{report.verdict}; "
    assert str(report.verdict).startswith("RACE: C, at mine.cu:")
    (line,) = (one for one in report.explain().splitlines()[1:] if TWO_WRITES in one)
    assert "and a write by thread (" in line
    assert "barrier" not in line
    assert "__syncthreads" not in line


def test_the_place_of_a_barrier_between_lines_of_two_files() -> None:
    race = replace(race_of(3, 9), other_file="b.cuh")
    assert [*places([race], "")] == ["__syncthreads() between a.cu:3 and b.cuh:9"]
    assert not places([replace(race, space="global")], "")
    assert not places([replace(race, message="the asynchronous proxy overwrites what may still be read")], "")


PIPELINE = """
void kernel() {
    tile[x] = A[x];  // 3
    for (int k = 0; k < K; ++k) {
        sum += tile[y];  // 5
        BARRIER
        tile[x] = A[k];  // 7
    }
    if (x)
        part[x] = sum;  // 10
    for (int half = 2; half; half /= 2)
        part[x] += part[x + half];  // 12
    do {
        part[x] += part[x + 1];  // 14
    } while (x < 2);
}
"""


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        # The barrier that is missing stands before the read in the loop: it orders both writes.
        ([(3, 5), (7, 5)], ["between line 4 and line 5"]),
        ([(7, 5), (3, 5)], ["between line 4 and line 5"]),
        ([(5, 7)], ["in the loop at lines 4-8, after line 7 and before line 5 is reached again"]),
        ([(3, 5), (10, 12)], ["between line 3 and line 5", "between line 10 and line 12"]),
        # No barrier fits between the rounds of a loop without braces.
        ([(12, 12), (10, 12)], ["before or after line 12, which different threads execute",
                                "between line 10 and line 12"]),
        ([(10, 14), (14, 14)], ["between line 13 and line 14"]),
    ],
)  # fmt: skip
def test_races_that_one_barrier_orders_have_one_place(lines: list[tuple[int, int]], told: list[str]) -> None:
    found = places([race_of(*pair) for pair in lines], PIPELINE.replace("BARRIER", "__syncthreads();"))
    assert found == [f"__syncthreads() {place}" for place in told]


def test_a_line_in_an_inner_loop_is_named_with_the_end_of_that_loop() -> None:
    text = PIPELINE.replace(
        "        tile[x] = A[k];  // 7\n", "        for (int i = 0; i < 4; ++i)\n            sum += tile[i];\n"
    )
    text = text.replace(
        "        sum += tile[y];  // 5\n        BARRIER\n", "        tile[x] = A[k];\n        __syncthreads();\n"
    )
    (place,) = places([race_of(8, 5)], text)
    assert place == (
        "__syncthreads() in the loop at lines 4-9, after the inner loop at lines 7-8 and before line 5 is reached again"
    )


def test_a_barrier_of_the_block_orders_a_warp_too() -> None:
    warp = replace(race_of(3, 5), message="__syncwarp() is missing")
    assert places([warp], PIPELINE) == ["__syncwarp() between line 3 and line 5"]
    assert places([warp, race_of(2, 5)], PIPELINE) == ["__syncthreads() between line 3 and line 5"]


def race_of(line: int, other: int) -> Hazard:
    message = "__syncthreads() is missing"
    return Hazard("race", "k", (0, 0, 0), (0, 0, 0), 0, "a.cu", line, other, message=message, space="shared")


def places(races: list[Hazard], text: str) -> list[str]:
    """The different places of barriers, in the order of the races."""
    found = missing_barriers(races, lambda _file: text)
    return [*dict.fromkeys(found[lines_of(race)] for race in races if lines_of(race) in found)]
