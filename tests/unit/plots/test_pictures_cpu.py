"""Pictures of CPU kernels: when elements are used, what caches hold, where elements are packed."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.ir.target import host_target
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.observe.element_use import ElementUse, Packed, cache_contents, find_element_use
from gemmlab.ops.catalog import find_op
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.plots.pictures import blocking, packing
from gemmlab.plots.pictures.blocking import _coarse, _majority
from gemmlab.plots.pictures.drawing import Subject
from gemmlab.plots.pictures.packing import Panel, packing_chart, panels_of
from gemmlab.probes.cachesim import REFERENCE
from support.picture_charts import svg_texts

GEMM = find_op("gemm")
SMALL = {"MC": 8, "KC": 8, "NC": 16}


def run(name: str, problem: GemmProblem, notes: int = 0, **config: int) -> ElementUse:
    return find_element_use(find_kernel(name), GEMM, problem, config, notes)


@cache
def packed_7x5() -> ElementUse:
    return run("packed", GemmProblem(7, 5, 3), notes=1 << 12)


def test_times_of_three_plain_loops_by_hand() -> None:
    # For each i and j: two loads for each p, then C is stored: 5 accesses for K = 2.
    seen = run("naive_ijk", GemmProblem(2, 3, 2, ldb=5))
    assert seen.accesses == 2 * 3 * 5
    assert seen.first["a"].tolist() == [[1, 3], [16, 18]]
    assert seen.last["a"].tolist() == [[11, 13], [26, 28]]
    assert seen.first["b"].tolist() == [[2, 7, 12], [4, 9, 14]]
    assert seen.last["b"].tolist() == [[17, 22, 27], [19, 24, 29]]
    assert seen.first["c"].tolist() == seen.last["c"].tolist() == [[5, 10, 15], [20, 25, 30]]
    assert not seen.packed
    assert not seen.workspace.size


def test_blocks_are_used_one_after_the_other() -> None:
    seen = run("cache_block", GemmProblem(16, 32, 16), **SMALL)

    def ordered(times: np.ndarray[Any, Any], rows: int, cols: int, places: list[tuple[int, int]]) -> bool:
        parts = [times[r * rows : (r + 1) * rows, c * cols : (c + 1) * cols] for r, c in places]
        return all(one.max() < two.min() for one, two in pairwise(parts))

    # jc outermost, then pc, then ic.
    assert ordered(seen.first["a"], 8, 8, [(0, 0), (1, 0), (0, 1), (1, 1)])
    assert ordered(seen.first["b"], 8, 16, [(0, 0), (1, 0), (0, 1), (1, 1)])
    assert ordered(seen.last["c"], 8, 16, [(0, 0), (1, 0), (0, 1), (1, 1)])
    # A is read again for the second block of columns, and the first half of B is not.
    assert seen.last["a"].min() > seen.accesses / 2
    assert seen.last["b"][:, :16].max() < seen.first["b"][:, 16:].min()


def test_where_seven_rows_and_five_columns_are_packed() -> None:
    # Panels of 4 and 3 rows take turns at float 0, k-major and padded to whole vectors; B lies behind 16 * KC.
    lanes = host_target().lanes
    stride = -(-4 // lanes) * lanes
    seen = packed_7x5()
    where = {(one.operand, one.row, one.col): one.offset for one in reversed(seen.packed) if one.operand}
    expected = {("a", i, k): k * stride + i % 4 for i in range(7) for k in range(3)}
    begin = 16 * 256
    expected |= {
        ("b", k, j): begin + j // lanes * lanes * 3 + k * lanes + j % lanes for k in range(3) for j in range(5)
    }
    assert where == expected
    # What is read beyond B's last column was put there, and is no element.
    beyond = {one.offset for one in seen.packed if not one.operand}
    assert beyond == {
        begin + j // lanes * lanes * 3 + k * lanes + j % lanes
        for k in range(3)
        for j in range(5, -(-5 // lanes) * lanes)
    }
    assert all(one.written for one in seen.packed)
    assert len(seen.workspace) * 4 == find_kernel("packed").workspace_bytes(
        GemmProblem(7, 5, 3), find_kernel("packed").configure({})
    )
    assert seen.workspace[0] == seen.first["a"][0, 0] + 1


def test_panels_of_seven_rows_and_five_columns() -> None:
    lanes = host_target().lanes
    stride = -(-4 // lanes) * lanes
    seen = packed_7x5()
    assert panels_of(seen.packed, "a", "row") == (Panel("a", 0, 0, 4, stride, 3), Panel("a", 0, 4, 3, stride, 3))
    begin = 16 * 256
    strips = tuple(
        Panel("b", begin + first * 3, first, min(lanes, 5 - first), lanes, 3) for first in range(0, 5, lanes)
    )
    assert panels_of(seen.packed, "b", "col") == strips


def test_lines_that_do_not_lie_side_by_side_are_panels_of_their_own() -> None:
    def read(offset: int, row: int, col: int) -> Packed:
        return Packed(offset, 1, "a", row, col, written=True)

    # Rows 0 and 1 interleaved, row 2 apart; what is read twice counts where it was read first.
    packed = [read(10 + 2 * col + row, row, col) for row in range(2) for col in range(3)]
    packed += [read(40 + col, 2, col) for col in range(3)] + [read(90, 0, 0)]
    assert panels_of(packed, "a", "row") == (Panel("a", 10, 0, 2, 2, 3), Panel("a", 40, 2, 1, 1, 3))
    assert panels_of(packed, "b", "col") == ()


def test_what_the_kernel_did_not_write_is_told_apart() -> None:
    # A kernel with a fault is not at hand: the workspace's filling, read as it is, is what one would read.
    from gemmlab.observe.element_use import _LEFT_OVER, _numbered, _packed

    numbers = _numbered(GEMM.operands(GemmProblem(2, 2, 2)))
    one = int(np.float32(6.0).view(np.uint32))
    state = np.array([0, 2, 2, 0, 7, _LEFT_OVER, 1, 8, one, 2], np.int64)
    first, second = _packed(state, 4, numbers)
    assert (first.offset, first.operand, first.written) == (7, "", False)
    # A holds 1 to 4, B 5 to 8.
    assert (second.offset, second.operand, second.row, second.col, second.written) == (8, "b", 0, 1, True)


def test_what_the_caches_hold_after_the_first_accesses() -> None:
    kernel, problem = find_kernel("naive_ijk"), GemmProblem(20, 40, 24)
    at_first = cache_contents(kernel, GEMM, problem, REFERENCE, 1)
    # A's first line: 16 floats of its first row.
    assert np.argwhere(at_first.level["a"] == 1).tolist() == [[0, col] for col in range(16)]
    assert not at_first.level["b"].any()
    whole = cache_contents(kernel, GEMM, problem, REFERENCE, 1 << 40)
    # All of it fits into 48 KiB.
    assert all((level == 1).all() for level in whole.level.values())
    assert not whole.packed.size


def test_a_moment_of_a_kernel_that_packs() -> None:
    kernel, problem = find_kernel("packed"), GemmProblem(7, 5, 3)
    seen = packed_7x5()
    caught = cache_contents(kernel, GEMM, problem, REFERENCE, seen.accesses)
    assert caught.packed.shape == seen.workspace.shape
    assert (caught.packed[seen.workspace > 0] == 1).all()
    # Nothing that was never used, lines apart, is held.
    used = set((np.flatnonzero(seen.workspace) // 16).tolist())
    assert {int(place) // 16 for place in np.flatnonzero(caught.packed)} == used


def test_cells_of_several_elements() -> None:
    parts = np.array([[3, 10, 1], [5, 2, 10], [10, 10, 7]], np.int64)
    # 10 stands for never, and gives way to whatever was used.
    assert _coarse(parts, 2, earliest=True).tolist() == [[2, 1], [10, 7]]
    assert _coarse(parts, 2, earliest=False).tolist() == [[5, 1], [10, 7]]
    levels = np.array([[1, 1, 0], [2, 1, 2]], np.int8)
    assert _majority(levels, 2).tolist() == [[1, 0]]


@pytest.mark.in_turns(20)
def test_pictures_render() -> None:
    problem = GemmProblem(7, 5, 3)
    subject = Subject(find_kernel("packed"), problem=problem)
    assert packing.DRAWING.applies(subject)
    assert blocking.DRAWING.applies(subject)
    texts = svg_texts(packing.DRAWING.draw(subject))
    # Each element twice: in its matrix, and where it is packed.
    names = [f"{i},{k}" for i in range(7) for k in range(3)] + [f"{k},{j}" for k in range(3) for j in range(5)]
    assert all(texts.count(name) == 2 * names.count(name) for name in names)
    assert {"A, rows 0 to 3, at float 0", "A, rows 4 to 6, at float 0"} <= set(texts)
    texts = svg_texts(blocking.DRAWING.draw(subject))
    assert {"in L1", "0 - 10 %", "90 - 100 %"} <= set(texts)
    assert any(text.startswith("packed copies, ") for text in texts)


@pytest.mark.in_turns(20)
def test_which_kernels_have_them() -> None:
    assert not packing.DRAWING.applies(Subject(find_kernel("naive_ijk")))
    for kernel in (find_kernel("block_tile"), *ladder("reduce", "cpu")):
        assert not blocking.DRAWING.applies(Subject(kernel))
    in_place = svg_texts(packing_chart([], {"a": (2, 3), "b": (3, 4)}))
    assert [re.sub(" +", " ", text) for text in in_place] == [
        "A 2 x 3: read in place", "B 3 x 4: read in place",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="not transposed"):
        blocking.DRAWING.draw(Subject(find_kernel("packed"), problem=replace(GemmProblem(4, 4, 4), trans_a=True)))


def test_elements_beyond_exact_numbers_are_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match=r"2\^24"):
        run("packed", GemmProblem(1 << 12, 1, (1 << 12) + 1), notes=16)
