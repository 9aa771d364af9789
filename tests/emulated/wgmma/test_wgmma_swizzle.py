"""An operand whose swizzle begins elsewhere than its descriptor says is reported, whoever wrote it.

Legal starts are not: whole patterns, steps along k, rows within a pattern, right base offsets, stores by address.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

import gemmlab
from gemmlab.core.hazard import Hazard

FILE = Path(__file__).with_name("wgmma_swizzle.cu")
LINES = FILE.read_text().splitlines()
ROWS = 72
MARKS = {"copied_128": "copies", "as_b_128": "B", "halves_128": "halves"}
"""Kernels that always write in the same way, and the mark of that line."""
Case = tuple[str, int, int, int, int, int]
"""Kernel, distance of the tile from a pattern's place, first row, step along k, base offset, stores by rows."""
WRONG: dict[Case, str] = {
    ("from_start_128", 128, 0, 0, 0, 0): "base offset 1 is needed, or a start at a multiple of 1,024 bytes",
    ("from_start_128", 512, 0, 1, 0, 0): "base offset 4 is needed, or a start at a multiple of 1,024 bytes",
    ("from_start_128", 896, 8, 3, 6, 0): "base offset 7 is needed, or a start at a multiple of 1,024 bytes",
    ("from_start_128", 256, 0, 2, 0, 1): "base offset 2 is needed, or a start at a multiple of 1,024 bytes",
    ("from_start_128", 1024, 0, 0, 3, 0): "base offset 0 is needed",
    ("halves_128", 128, 0, 0, 0, 0): "base offset 1 is needed, or a start at a multiple of 1,024 bytes",
    ("as_b_128", 640, 8, 1, 0, 0): "base offset 5 is needed, or a start at a multiple of 1,024 bytes",
    ("from_start_64", 128, 0, 1, 0, 0): "base offset 1 is needed, or a start at a multiple of 512 bytes",
    ("from_start_64", 256, 8, 0, 0, 1): "base offset 2 is needed, or a start at a multiple of 512 bytes",
    ("from_start_32", 128, 0, 0, 0, 0): "base offset 1 is needed, or a start at a multiple of 256 bytes",
    ("from_start_32", 0, 0, 0, 1, 1): "base offset 0 is needed",
    ("copied_128", 128, 0, 0, 1, 0): "base offset 0 is needed",
}
RIGHT: list[Case] = [
    *(("from_start_128", 1024 * step, 8 * (step & 1), step, 0, step & 1) for step in range(4)),
    *(("from_start_128", 128 * base, 0, base & 3, base, base & 1) for base in range(1, 8)),
    ("from_start_128", 0, 3, 1, 0, 0),
    ("from_start_128", 128, 4, 2, 1, 1),
    *(("from_start_64", 128 * base, 0, base & 1, base, base & 1) for base in range(4)),
    ("from_start_64", 512, 4, 1, 0, 0),
    ("from_start_64", 512, 0, 0, 4, 0),
    *(("from_start_32", 128 * base, 0, 0, base, base & 1) for base in range(2)),
    *((f"by_address_{width}", 128, 0, 0, 0, rows) for width in (32, 64, 128) for rows in (0, 1)),
    ("by_address_128", 512, 8, 3, 0, 0),
    ("by_address_64", 384, 0, 1, 0, 1),
    ("halves_128", 128, 0, 1, 1, 0),
    ("as_b_128", 640, 8, 1, 5, 0),
    ("copied_128", 128, 0, 1, 0, 0),
    ("copied_128", 1024, 0, 2, 0, 0),
]


def run(case: Case, data: npt.NDArray[np.float16]) -> tuple[list[Hazard], bool]:
    """Its hazards; true if it adds up the right elements."""
    kernel, away, row, step, base, by_rows = case
    out = np.zeros(64, np.float32)
    copies = kernel.startswith("copied")
    source = gemmlab.TensorMap(data, (ROWS, 64), swizzle=128) if copies else data
    more = [np.int32(each) for each in (away, row, step, base, by_rows)][: 4 if kernel in MARKS else 5]
    done = gemmlab.launch(
        FILE, kernel, args=[source, out, *more], grid=1, threads=128, smem_bytes=1 << 15, device="emulated:sm_90a"
    )
    expected = data[row : row + 64, 16 * step : 16 * step + 16].astype(np.float32) @ np.repeat((1, 2), 8)
    assert isinstance(done.outputs, list)
    count = 8 if kernel == "as_b_128" else 64
    return list(done.hazards or ()), np.array_equal(done.outputs[-1][:count], expected[:count])


def numbers(width: int) -> npt.NDArray[np.float16]:
    """A tile of small whole numbers."""
    return np.random.default_rng(width).integers(0, 64, (ROWS, width // 2)).astype(np.float16)


def line_of(mark: str) -> int:
    (found,) = (number for number, line in enumerate(LINES, 1) if line.endswith(f"// {mark}"))
    return found


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("case", WRONG, ids=str)
@pytest.mark.sampled(4)
def test_a_pattern_that_begins_elsewhere_is_reported_with_both_lines(case: Case) -> None:
    (found,), right = run(case, numbers(int(case[0].rpartition("_")[2])))
    assert not right
    wrote = MARKS.get(case[0], "by rows" if case[5] else "stores")
    assert (found.kind, found.line, found.other_line) == ("misaligned", line_of("multiply"), line_of(wrote))
    assert f"by the descriptor of {'B' if case[0] == 'as_b_128' else 'A'} (start 0x" in found.message
    assert f"swizzle {case[0].rpartition('_')[2]}" in found.message
    assert found.message.endswith(f": {WRONG[case]}")


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("case", RIGHT, ids=str)
@pytest.mark.sampled(4)
def test_legal_starts_are_right_and_not_reported(case: Case) -> None:
    assert run(case, numbers(int(case[0].rpartition("_")[2]))) == ([], True)


def test_equal_elements_without_a_pattern_are_not_reported() -> None:
    assert run(("plain_128", 128, 0, 0, 0, 0), np.ones((ROWS, 64), np.float16)) == ([], True)
