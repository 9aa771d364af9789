"""The plan of a product in pieces: within the memory allowed, what is copied, what is predicted, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.dispatch.piece_plan import PiecePlan
from gemmlab.dispatch.regions import workspace_of
from gemmlab.kernels.catalog import ladder
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.pieces.cut import Limits, cut
from gemmlab.pieces.gpu_limits import BY_GRID
from gemmlab.pieces.route import route

MOST_PIECES = 30_000
"""Most pieces of a plan whose copies are followed one by one. Single elements as pieces are millions: half a minute."""


@pytest.mark.in_turns(20)
@settings(max_examples=200, deadline=None)
@given(
    extents=st.tuples(*[st.integers(1, 3000)] * 2, st.integers(0, 500)), share=st.floats(0, 1.2),
    tile=st.tuples(*[st.sampled_from([1, 64, 128, 96])] * 2), turned=st.tuples(st.booleans(), st.booleans()),
    whole=st.sampled_from([(False, False), (True, False), (False, True)]), link=st.sampled_from([None, 55.0]),
)  # fmt: skip
def test_a_plan_keeps_its_bounds(
    extents: tuple[int, int, int], share: float, tile: tuple[int, int], turned: tuple[bool, bool],
    whole: tuple[bool, bool], link: float | None,
) -> None:  # fmt: skip
    m, n, k = extents
    frame = PiecePlan(m, n, k, m, n, by_rows=True, turned=turned, reads=bool(k), reads_c=bool(k % 2), link_gbs=link)
    limits = Limits(tile, whole, lambda rows, cols: rows + cols, lambda rows, cols: 1e-12 * rows * cols * (k + 1))
    with pytest.raises(UsageError, match="takes at least") as refused:
        cut(frame, limits)
    low = int(str(refused.value).split("at least ")[1].split(", for")[0].replace(",", ""))
    with pytest.raises(UsageError, match="takes at least"):
        cut(with_memory(frame, low - 1), limits)
    allowed = low + int(share * 4 * (m * k + k * n + m * n))
    plan = cut(with_memory(frame, allowed), limits)
    assert plan.least_bytes == low
    assert plan.device_bytes <= allowed
    down, across = plan.grid
    assert down == 1 or (plan.rows % tile[0] == 0 and not whole[0])
    assert across == 1 or (plan.cols % tile[1] == 0 and not whole[1])
    if down * across > MOST_PIECES:
        return
    pieces = list(plan.order())
    assert sorted(pieces) == [(row, col) for row in range(down) for col in range(across)]
    copied = 0
    held: dict[tuple[str, int], tuple[int, int]] = {}
    for step in route(plan):
        for load in step.loads:
            extent = plan.extents(load.panel, 0)[0] if load.name == "a" else plan.extents(0, load.panel)[1]
            assert load.part == 0 or held[load.name, load.slot] == (load.panel, load.part)
            held[load.name, load.slot] = load.panel, (load.part + 1) % load.parts
            copied += 4 * k * extent * (load.part + 1 == load.parts)
        if plan.reads:
            assert held["a", step.slots[0]] == (step.row, 0)
            assert held["b", step.slots[1]] == (step.col, 0)
        assert all(slot < room.slots for slot, room in zip(step.slots, plan.rooms.values(), strict=True))
    assert plan.bytes_in == copied + 4 * m * n * plan.reads_c


def with_memory(frame: PiecePlan, nbytes: int) -> PiecePlan:
    from dataclasses import replace

    return replace(frame, memory_bytes=nbytes)


@settings(max_examples=200, deadline=None)
@given(
    extents=st.tuples(*[st.integers(1, 900)] * 2), each=st.tuples(*[st.integers(1, 300)] * 2),
    tile=st.tuples(*[st.sampled_from([1, 32, 96, 128])] * 2), unit=st.sampled_from([1, 32]),
)  # fmt: skip
def test_launches_are_whole_tiles_around_pieces(
    extents: tuple[int, int], each: tuple[int, int], tile: tuple[int, int], unit: int
) -> None:
    """Each fits into a slot, and its extents are among those for which a plan has workspace."""
    rows, cols = (min(whole, max(one, a_tile)) for whole, one, a_tile in zip(extents, each, tile, strict=True))
    plan = PiecePlan(*extents, 10, rows, cols, by_rows=True, turned=(False, False), tile=tile, tail=tile, unit=unit)
    for row, col in plan.order():
        begins, sizes = (row * plan.rows, col * plan.cols), plan.extents(row, col)
        launched = plan.launched(row, col)
        for (first, length), begin, size, whole, one in zip(launched, begins, sizes, extents, tile, strict=True):
            assert first % one == 0
            assert first <= begin
            assert begin + size <= first + length <= whole
            assert (first + length) % one == 0 or first + length == whole
            assert length >= min(one, whole)
        height, width = plan.computed(row, col)
        assert height in plan.heights
        assert width in plan.widths


def test_a_step_exchanges_one_panel_and_a_part_of_the_next_strips() -> None:
    plan = PiecePlan(400, 500, 10, 100, 100, by_rows=True, turned=(False, False))
    steps = list(route(plan))
    passing = [sum(load.name == "b" for load in step.loads) for step in steps]
    assert passing == [1] * 5 + [0, 0, 1, 1, 1] * 3
    for strip in range(3):
        parts = [load for step in steps[5 * strip + 1 : 5 * strip + 5] for load in step.loads if load.name == "a"]
        assert [(load.panel, load.part, load.parts) for load in parts] == [(strip + 1, part, 4) for part in range(4)]
    assert not [load for step in steps[15:] for load in step.loads if load.name == "a"]


def test_a_strip_of_one_piece_copies_its_panel_at_once() -> None:
    plan = PiecePlan(400, 100, 10, 100, 100, by_rows=True, turned=(False, False))
    assert [[load.parts for load in step.loads] for step in route(plan)] == [[1, 1], [1], [1], [1]]


def test_narrow_strided_panels_take_the_link_longer() -> None:
    frame = PiecePlan(27648, 27648, 27648, 1536, 2816, by_rows=False, turned=(False, False), link_gbs=55, line_ns=216)
    rows = 1536 * 27648 * 4 / 55e9
    assert frame.load_seconds("a") == pytest.approx(rows)
    assert frame.load_seconds("b") == pytest.approx(27648 * 216e-9)
    turned = PiecePlan(27648, 27648, 27648, 1536, 2816, by_rows=False, turned=(True, True), link_gbs=55, line_ns=216)
    assert turned.load_seconds("a") == pytest.approx(27648 * 216e-9)
    assert turned.load_seconds("b") == pytest.approx(2816 * 27648 * 4 / 55e9)
    assert frame.load_seconds("c") == pytest.approx(1536 * 216e-9)


def test_three_operands_of_12_gb_in_4_gb() -> None:
    found = gemmlab.explain_choice((54772, 54772), (54772, 54772), device="H200", memory_bytes=4 << 30)
    plan = found.pieces
    assert plan is not None
    assert plan.device_bytes <= 4 << 30
    assert plan.kernel_seconds is not None
    assert plan.seconds is not None
    assert plan.link_seconds is not None
    assert plan.link_seconds < plan.kernel_seconds < plan.seconds < 1.02 * plan.kernel_seconds
    whole = gemmlab.explain_choice(
        (54772, 54772), (54772, 54772), device="H200", kernel=found.kernel, config=found.config
    )
    assert found.same_code(whole)
    assert found.order == whole.order
    text = str(found)
    for line in (f"pieces: 9 x 20 of {plan.rows} x {plan.cols}", "memory: ", "copies: ", "predicted: link "):
        assert line in text
    assert json.loads(json.dumps(found.to_json()))["pieces"]["bytes_in"] == plan.bytes_in
    assert str(plan.rows) in repr(plan)
    assert "pieces: " in found._repr_html_()
    assert "pieces: " in plan._repr_html_()


def test_kernels_that_deal_out_k_over_the_grid_are_all_known() -> None:
    """Their parts of sums, so their workspace too, depend on the number of blocks."""
    problem = GemmProblem(512, 512, 4096)
    for kernel in (one for one in ladder("gemm", "cuda") if "BLOCKS" in one.params):
        needs = {workspace_of(kernel, kernel.configure({"BLOCKS": blocks}), problem) for blocks in (5, 7)}
        assert (len(needs) > 1) == (kernel.id in BY_GRID), kernel.id


def test_a_kernel_that_deals_out_k_over_the_grid_is_replaced() -> None:
    shapes = (4096, 4096), (4096, 4096)
    found = gemmlab.explain_choice(*shapes, device="H200", memory_bytes=60 << 20)
    assert gemmlab.explain_choice(*shapes, device="H200").kernel == "peak_simt"
    assert found.kernel not in ("stream_k", "peak_simt")
    assert "peak_simt" in str(found.pieces)
    for kernel in ("stream_k", "peak_simt"):
        with pytest.raises(UsageError, match=rf"{kernel} .* cannot work in pieces: divides k over the whole grid"):
            gemmlab.explain_choice(*shapes, device="H200", memory_bytes=60 << 20, kernel=kernel)
    with pytest.raises(
        UsageError, match="cannot work in pieces: sums the rows and columns at the edge in another order"
    ):
        gemmlab.explain_choice(
            *shapes, device="H200", memory_bytes=60 << 20, kernel="split_k", config={"SEAM": 4, "SPLITS": 1}
        )


@pytest.mark.parametrize(("m", "n"), [(16, 20000), (20000, 16), (5, 5)])
def test_the_narrow_operand_of_a_strip_is_not_cut(m: int, n: int) -> None:
    plan = gemmlab.explain_choice((m, 999), (999, n), device="H200", memory_bytes=2 << 20, kernel="narrow_strip").pieces
    assert plan is not None
    narrow_rows = m <= n
    assert plan.grid[0 if narrow_rows else 1] == 1
    for row, col in plan.order():
        rows, cols = plan.computed(row, col)
        assert (rows <= cols) == narrow_rows


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"memory_bytes": 0}, UsageError, "memory_bytes is 0; it must be at least 1"),
        ({"memory_bytes": 1.5}, ArgumentTypeError, "memory_bytes is 1.5, not a whole number"),
        ({"memory_bytes": 1}, UsageError, "takes at least"),
    ],
)
def test_refused_bounds(how: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        gemmlab.explain_choice((100, 100), (100, 100), device="H200", **how)


def test_stacks_and_vectors_are_refused() -> None:
    for shapes in (((2, 10, 10), (10, 10)), ((10,), (10, 10))):
        with pytest.raises(UsageError, match="matrices of two axes"):
            gemmlab.explain_choice(*shapes, device="H200", memory_bytes=1 << 20)
