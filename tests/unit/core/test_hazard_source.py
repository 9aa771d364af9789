"""The source text that hazards are shown with, and the array that is told from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmlab.core.hazard import Hazard
from gemmlab.core.hazard_source import with_source

SOURCE = """__global__ void turn(const float* x, float* out, int n) {
    __shared__ float tile[32][33];
    __shared__ float total;
    tile[threadIdx.y][threadIdx.x] = x[n];
    total = 0;
    out[n] = tile[threadIdx.x][threadIdx.y] + total;
    out[n] += x[n];
    float* rows = &tile[0][0];
    rows[n] = 1;
    rows[n + 1] = 2;
    __shared__ float f;
    tile[0][n] = 1.f + n;
    asm("" ::"f"(tile[0][0] + 2.f));
}
"""


def hazard(line: int, other: int, space: str, file: str = "turn.cu", other_file: str = "") -> Hazard:
    return Hazard(
        "race", "turn", (0, 0, 0), (0, 0, 0), 0, file, line, other, other_file=other_file, space=space, message="said"
    )


@pytest.mark.parametrize(
    ("line", "other", "space", "array"),
    [
        (4, 6, "shared", "tile"),
        (6, 5, "shared", "total"),
        (6, 0, "shared", ""),  # two shared variables
        (9, 10, "shared", "rows"),  # no shared variable, but one name with a subscript
        (12, 13, "shared", "tile"),  # f is a suffix and a text
        (6, 7, "global", "out"),
        (4, 0, "global", "x"),
        (7, 0, "global", ""),  # x and out
        (4, 0, "local", ""),
    ],
)
def test_an_array_is_named_where_the_lines_name_one(line: int, other: int, space: str, array: str) -> None:
    (found,) = with_source([hazard(line, other, space)], {"turn.cu": SOURCE})
    lines = SOURCE.splitlines()
    assert (found.array, found.text) == (array, lines[line - 1].strip())
    assert found.other_text == (lines[other - 1].strip() if other else "")


def test_both_lines_and_the_array_are_in_the_sentence() -> None:
    (found,) = with_source([hazard(4, 6, "shared")], {"turn.cu": SOURCE})
    assert found.explain() == (
        "race at turn.cu:4 `tile[threadIdx.y][threadIdx.x] = x[n];` and line 6 "
        "`out[n] = tile[threadIdx.x][threadIdx.y] + total;` "
        "(array tile, kernel turn, block (0, 0, 0), thread (0, 0, 0), address 0x0): said"
    )


def test_files_are_read_and_long_lines_cut(tmp_path: Path) -> None:
    main, header = tmp_path / "main.cu", tmp_path / "tile.cuh"
    main.write_text("tile[1] = 2;", encoding="utf-8")
    header.write_text(f"// first\n  x = tile[{'1 + ' * 40}2];", encoding="utf-8")
    (found,) = with_source([hazard(1, 2, "shared", str(main), str(header))])
    assert (found.text, found.array) == ("tile[1] = 2;", "tile")
    assert found.other_text.startswith("x = tile[1 + ")
    assert (len(found.other_text), found.other_text[-3:]) == (80, "...")
    assert "main.cu:1 `tile[1] = 2;` and tile.cuh:2 `x = tile[" in found.without_folders().explain()


def test_without_a_source_nothing_is_added() -> None:
    for one in (hazard(3, 4, "shared", "/no/such/file.cu"), hazard(0, 0, "", ""), hazard(99, 0, "shared")):
        assert with_source([one], {"turn.cu": SOURCE}) == (one,)
