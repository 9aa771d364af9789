"""Pictures of machine code: the register tile, the order of issue, the pipeline, stalls, the roofline."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cuda_source import needs_compiler
from sass_corpus import functions, written

from gemmlab.cli.explain_roofline import require_drawable, write_roofline
from gemmlab.core.errors import UsageError
from gemmlab.explain.explanation import explain
from gemmlab.explain.subject import machine
from gemmlab.explain.under_roof import under_roof
from gemmlab.kernels.catalog import find_kernel
from gemmlab.measure.profile import Profile
from gemmlab.measure.profiles import load_profiles
from gemmlab.plots.chart import render, specification
from gemmlab.plots.pictures import issue, pipeline, register_tile, warps
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.kinds import ADDRESS, GLOBAL, LOAD, MATH, executed_by, loop_code
from gemmlab.plots.pictures.pipeline import Span, ticks, timeline
from gemmlab.plots.pictures.warps import WAITING, block_timeline
from gemmlab.plots.roofline import Placed, roofline_chart
from gemmlab.plots.stalls import StallBar, stall_bars, stall_chart
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.instruction import Control, Instruction
from gemmlab.sass.loops import main_loop
from gemmlab.sass.register_tile import RegisterTile
from gemmlab.sass.register_tile import register_tile as tile_of

IDLE = Control(1, True, 7, 7, 0, 0)
RECORD = Path(__file__).parents[2] / "benchmarks" / "results" / "h200" / "ncu.json"


@cache
def subject(name: str) -> Subject:
    return Subject(find_kernel(name))


def found(instructions: tuple[Instruction, ...], arch: str = "sm_90") -> RegisterTile:
    tile = tile_of(instructions, arch)
    assert tile is not None
    return tile


def svg_texts(chart: object) -> list[str]:
    svg = render(specification(chart), ".svg").decode()  # type: ignore[arg-type]
    return re.findall(r"<text[^>]*>([^<]+)</text>", svg)


def rows_of(spec: dict[str, Any], layer: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = spec["datasets"][spec["layer"][layer]["data"]["name"]]
    return rows


def test_the_tile_of_code_that_was_read_by_hand() -> None:
    # The loop of tests/data/sass/loops: two LDS.128 bring R4-R7 and R8-R11, sixteen FFMA follow row by row.
    function = functions("loops", "sm_90")["outer"]
    graph, loop = flow_graph(function), main_loop(function)
    assert loop is not None
    tile = found(tuple(graph.instructions(*loop.own)))
    assert [factor.register for factor in tile.rows] == [4, 5, 6, 7]
    assert [factor.register for factor in tile.columns] == [8, 9, 10, 11]
    assert [factor.address for factor in tile.rows] == ["[R3]", "[R3+0x4]", "[R3+0x8]", "[R3+0xc]"]
    by_hand = [17, 20, 15, 18, 16, 14, 13, 12, 19, 22, 21, 24, 26, 28, 23, 25]
    assert [cell.register for cell in tile.cells] == by_hand
    assert [(cell.row, cell.column) for cell in tile.cells] == [
        (row, column) for row in range(4) for column in range(4)
    ]
    assert [cell.kept for cell in tile.cells] == [("row",), ("row",), ("row",), ()] * 4
    assert [cell.bank for cell in tile.cells] == [register % 2 for register in by_hand]
    assert (tile.accumulators, tile.steps, tile.banks, tile.opcode) == (16, 1, 2, "FFMA")


def test_values_are_followed_not_registers() -> None:
    # Two steps of k, 2 x 2. In the second one R20 is a factor of the other side, operands change places, and one sum
    # moves from R3 to R9: still two rows, two columns, four sums.
    code = written(
        "LDS.64 R20, [R40]", "LDS.64 R22, [R41+0x8]",
        "FFMA R0, R20, R22.reuse, R0", "FFMA R2, R22, R21, R2", "FFMA R1, R20, R23, R1", "FFMA R9, R23, R21, R3",
        "LDS.64 R24, [R40+0x8]", "LDS.64 R20, [R41+0x10]",
        "FFMA R0, R24, R20, R0", "FFMA R1, R21, R24, R1", "FFMA R2, R20, R25, R2", "FFMA R3, R25, R21, R9",
    ).instructions  # fmt: skip
    tile = found(code)
    assert (len(tile.rows), len(tile.columns), tile.accumulators, tile.steps) == (2, 2, 4, 2)
    # Both steps have four; shown is the first. As many of its factors stand first as second: the side of R20 are rows.
    assert [(cell.row, cell.column, cell.register) for cell in tile.cells] == [
        (0, 0, 0), (1, 0, 2), (0, 1, 1), (1, 1, 9),
    ]  # fmt: skip
    assert tile.cells[0].kept == ("column",)
    assert [factor.address for factor in tile.columns] == ["[R41+0x8]", "[R41+0xc]"]


def test_what_a_round_reads_first_the_round_before_wrote() -> None:
    # Fetched a step ahead, at the loop's end: the addresses are known all the same.
    code = written("FFMA R0, R8, R12, R0", "FFMA R1, R9, R12, R1", "LDS.64 R8, [R4+0x20]", "LDS R12, [R5]")
    assert [factor.address for factor in found(code.instructions).rows] == ["[R4+0x20]", "[R4+0x24]"]


def test_multiply_adds_that_form_no_tile() -> None:
    assert tile_of(written("IADD3 R0, R1, R2, RZ", "FADD R3, R4, R5").instructions, "sm_90") is None
    # A triangle has no two sides.
    triangle = written("FFMA R0, R4, R5, R0", "FFMA R1, R5, R6, R1", "FFMA R2, R6, R4, R2")
    assert tile_of(triangle.instructions, "sm_90") is None
    # A sum that one step reaches twice lies in two squares.
    twice = written("FFMA R0, R4, R5, R0", "FFMA R0, R4, R6, R0")
    assert tile_of(twice.instructions, "sm_90") is None


def test_conflicts_are_those_of_the_banks() -> None:
    # All three sources of the second one are even: one bank of two ports.
    code = written("FFMA R1, R4, R7, R1", "FFMA R2, R4, R6, R2").instructions
    assert [cell.conflict_cycles for cell in found(code).cells] == [0, 1]


@pytest.mark.parametrize(("name", "rows", "columns"), [("register_stage", 8, 8), ("conflict_free", 8, 8)])
def test_every_sum_of_a_rung_lies_in_one_square(name: str, rows: int, columns: int) -> None:
    tile = found(loop_code(subject(name)).instructions)
    assert (len(tile.rows), len(tile.columns), tile.accumulators, tile.steps) == (rows, columns, 64, 8)
    assert {(cell.row, cell.column) for cell in tile.cells} == {(r, c) for r in range(rows) for c in range(columns)}
    assert [cell.order for cell in tile.cells] == list(range(64))
    assert len({cell.register for cell in tile.cells}) == 64
    # A quarter of the tile is one LDS.128 of each side: four neighbours, then four more.
    for side in (tile.rows, tile.columns):
        offsets = [factor.offset for factor in side]
        steps = [two - one for one, two in pairwise(offsets)]
        assert [step for place, step in enumerate(steps) if place != 3] == [4] * 6


def test_one_sum_is_no_tile_worth_a_picture() -> None:
    assert not register_tile.DRAWING.applies(subject("block_tile"))
    with pytest.raises(UsageError, match="no tile"):
        register_tile.DRAWING.draw(Subject(find_kernel("packed")))


def timed(text: str, address: int, **control: int) -> Instruction:
    (instruction,) = written(text).instructions
    return replace(instruction, address=address, control=replace(IDLE, **control))  # type: ignore[arg-type]


def test_the_time_line_of_code_written_by_hand() -> None:
    line = timeline(
        [
            timed("MOV R0, RZ", 0, stall=4),
            timed("LDG.E R4, [R2.64]", 16, stall=2, write_barrier=0),
            timed("FFMA R8, R9, R10, R8", 32, stall=3),
            timed("HFMA2.MMA R7, -RZ, RZ, 0, 0", 48, stall=1),
            timed("LDS R5, [R6]", 64, stall=1, write_barrier=1),
            timed("FFMA R8, R5, R10, R8", 80, stall=5, wait_mask=0b10),
            timed("STS [R6], R4", 96, stall=0, wait_mask=0b01),
            timed("FFMA R8, R9, R10, R8", 32, stall=3),
        ],
        header=32, rounds=1,
    )  # fmt: skip
    # The second round is not begun; an instruction takes a cycle at least.
    assert line.cycles == 4 + 2 + 3 + 1 + 1 + 5 + 1
    assert line.rounds == (6,)
    assert [(span.kind, span.begin, span.end) for span in line.issued] == [
        (ADDRESS, 0, 4), (GLOBAL, 4, 6), (MATH, 6, 9), (ADDRESS, 9, 10), (LOAD, 10, 11), (MATH, 11, 16),
        ("shared store", 16, 17),
    ]  # fmt: skip
    assert sorted(line.flights, key=lambda span: span.begin) == [Span(GLOBAL, 4, 16), Span(LOAD, 10, 11)]


def test_copies_are_under_way_until_their_group_is_waited_for() -> None:
    copy, commit = "LDGSTS.E.128 [R0], [R2.64]", "LDGDEPBAR"
    codes = (copy, commit, copy, copy, commit, "DEPBAR.LE SB0, 0x1", "NOP", "DEPBAR.LE SB0, 0x0")
    line = timeline([timed(code, 16 * place) for place, code in enumerate(codes)], header=-1)
    assert sorted((span.begin, span.end) for span in line.flights) == [(0, 5), (2, 7), (3, 7)]


def test_at_a_barrier_all_warps_wait_for_the_last() -> None:
    work, meet = timed("FFMA R0, R1, R2, R0", 0, stall=4), timed("BAR.SYNC.DEFER_BLOCKING 0x0", 16, stall=2)
    load = timed("LDS R4, [R5]", 32, stall=3)
    line = block_timeline([[work, work, meet, load], [work, meet, load, load]], header=-1, rounds=2)
    assert line.barriers == (10,)
    assert line.cycles == 10 + 6
    assert line.warps[0] == (Span(MATH, 0, 8), Span("barrier", 8, 10), Span(LOAD, 10, 13))
    assert line.warps[1][-2:] == (Span(WAITING, 6, 10), Span(LOAD, 10, 16))
    # One round of the loop that begins with the work.
    assert block_timeline([[work, load, work]], header=0, rounds=1).warps == ((Span(MATH, 0, 4), Span(LOAD, 4, 7)),)


def test_half_of_the_warps_waits_in_each_round_of_a_tree() -> None:
    sequential = subject("reduce_sequential")
    line = block_timeline([executed_by(sequential, warp) for warp in range(8)], loop_code(sequential).header, 8)
    # Eight rounds for 256 threads, and one barrier before them. In the first one four warps add, then two, then one.
    assert len(line.barriers) == 9
    spans = zip(line.barriers, line.barriers[1:], strict=False)
    adding = [
        sum(any(span.kind == MATH and begin <= span.begin < end for span in warp) for warp in line.warps)
        for begin, end in spans
    ]
    assert adding == [4, 2, 1, 1, 1, 1, 1, 1]
    texts = svg_texts(warps.DRAWING.draw(sequential))
    assert {"warp 0", "warp 1", "warps 2 - 3", "warps 4 - 7", WAITING} <= set(texts)


def test_ticks_are_round_and_few() -> None:
    for cycles, step in ((1, 1), (8, 1), (9, 2), (40, 5), (800, 100), (1700, 500), (2200, 500)):
        assert ticks(cycles) == range(0, cycles + 1, step)


def overlap(name: str) -> float:
    """The part of the multiply-adds of the loop's rounds that run while something from global memory is under way."""
    code = loop_code(subject(name))
    line = timeline(executed_by(subject(name), 0), code.header)
    busy = [span for span in line.issued if span.kind == MATH and span.begin >= line.rounds[0]]
    flights = [span for span in line.flights if span.kind == GLOBAL]
    covered = sum(any(flight.begin <= span.begin and span.end <= flight.end for flight in flights) for span in busy)
    return covered / len(busy)


def test_two_buffers_load_while_they_compute_and_one_does_not() -> None:
    assert overlap("block_tile") == 0
    assert overlap("register_stage") == 0
    assert overlap("double_buffer") > 0.7
    assert overlap("async_copy") > 0.95


@pytest.mark.parametrize("drawing", [register_tile.DRAWING, issue.DRAWING, pipeline.DRAWING], ids=lambda d: d.name)
def test_pictures_of_a_rung_render(drawing: Drawing) -> None:
    kernel = subject("register_stage")
    assert drawing.applies(kernel)
    assert not drawing.applies(Subject(find_kernel("packed")))
    texts = svg_texts(drawing.draw(kernel))
    code = loop_code(kernel).instructions
    ffma = sum(i.opcode == "FFMA" for i in code)
    expected = {
        "register_tile": {"64", "bank 0", "bank 1", *(f"R{cell.register}" for cell in found(code).cells)},
        "issue": {f"{ffma} FFMA", f"{code[0].address:#06x}", "floating point", "shared load"},
        "pipeline": {"round 1", "round 2", "round 3", "floating point", "global memory: under way"},
    }[drawing.name]
    assert expected <= set(texts)


def test_the_strip_has_a_number_for_every_stall_above_one() -> None:
    code = loop_code(subject("register_stage")).instructions
    texts = svg_texts(issue.issue_chart(code))
    wanted = sorted(str(i.control.stall) for i in code if i.control.stall > 1)
    assert sorted(text for text in texts if text.isdigit()) == wanted


def test_stall_bars_are_the_record_s() -> None:
    if not RECORD.is_file():
        pytest.skip("no record")
    profiles = [
        p for p in load_profiles(RECORD).profiles if p.size == "2048x2048x2048" and p.name in ("naive", "cublas")
    ]
    bars = stall_bars(profiles)
    assert {bar.name for bar in bars} == {"naive", "cublas"}
    assert all(bar.cycles["selected"] == pytest.approx(1.0) for bar in bars)
    texts = svg_texts(stall_chart(bars, title="Stalls"))
    assert {"Stalls", "naive", "cublas", "issued", "long scoreboard"} <= set(texts)
    assert all(f"{sum(bar.cycles.values()):.1f}" in texts for bar in bars)


def test_stalls_beyond_the_seven_longest_are_one() -> None:
    states = {f"state_{n}": float(n) for n in range(1, 10)}
    spec = specification(
        stall_chart([StallBar("one", {**states, "selected": 1.0}), StallBar("two", {"state_9": 20.0})])
    )
    rows = rows_of(spec, 0)
    one = {row["state"]: row["cycles"] for row in rows if row["name"] == "one"}
    assert one == {"issued": 1.0, **{f"state {n}": float(n) for n in range(3, 10)}, "others": 3.0}


def test_a_bar_that_would_flatten_the_others_makes_all_of_them_shares() -> None:
    short = [StallBar("a", {"wait": 3.0, "selected": 1.0}), StallBar("b", {"wait": 1.0, "selected": 1.0})]
    for first, drawn in ((15.0, {4.0, 2.0, 16.0}), (99.0, {100.0})):
        chart = stall_chart([StallBar("long", {"wait": first, "selected": 1.0}), *short])
        rows = rows_of(specification(chart), 0)
        names = {row["name"] for row in rows}
        assert {sum(row["cycles"] for row in rows if row["name"] == name) for name in names} == drawn
        texts = svg_texts(chart)
        assert {f"{first + 1:.1f}", "4.0", "2.0"} <= set(texts), "the labels are cycles in both"
        assert ("percent of a warp's time" in json.dumps(specification(chart))) is (drawn == {100.0})


def test_profiles_without_cycles_have_no_bar_and_sizes_are_told_where_they_differ() -> None:
    metric = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
    profiles = [
        Profile("kernel:a", "512x512x512", ("f",), {}, {}, {metric: 2.0}),
        Profile("kernel:a", "64x32x16", ("f",), {}, {}, {metric: 3.0}),
        Profile("kernel:b", "64x32x16", ("f",), {}, {}, {}),
    ]
    assert [bar.name for bar in stall_bars(profiles)] == ["a 512³", "a 64x32x16"]


def test_the_roofline_has_a_roof_a_level_and_a_mark_a_kernel_and_level() -> None:
    kernels = [
        Placed("low", 2000.0, {"L1": (0.5, 0.5), "DRAM": (10.0, 300.0)}),
        Placed("high", 40000.0, {"L1": (4.0, 4.0), "DRAM": (60.0, 900.0)}),
    ]
    chart = roofline_chart(kernels, {"L1": 30000.0, "DRAM": 4800.0}, {"FMA peak": 60000.0}, title="Roof")
    spec = specification(chart)
    roofs = rows_of(spec, 0)
    # Every point of a roof is its bandwidth times the intensity, and it ends at the peak, told in TFLOP/s.
    for level, gbs in (("L1", 30000.0), ("DRAM", 4800.0)):
        line = [row for row in roofs if row["level"] == level]
        assert all(row["y"] == pytest.approx(row["x"] * gbs / 1e3) for row in line)
        assert max(row["y"] for row in line) == pytest.approx(60.0)
    marks = rows_of(spec, -1)
    assert {(m["kernel"], m["level"], m["low"], m["x"], m["y"]) for m in marks} == {
        ("low", "L1", 0.5, 0.5, 2.0), ("low", "DRAM", 10.0, 300.0, 2.0),
        ("high", "L1", 4.0, 4.0, 40.0), ("high", "DRAM", 60.0, 900.0, 40.0),
    }  # fmt: skip
    assert {"Roof", "FMA peak 60", "low", "high", "L1", "DRAM"} <= set(svg_texts(chart))


@needs_compiler
def test_explained_kernels_lie_under_the_roofs_of_their_gpu(tmp_path: Path) -> None:
    naive, tiled = (explain(find_kernel(name), *machine(), {}, "64") for name in ("naive", "block_tile"))
    spec = specification(under_roof([naive, tiled], {"naive": 6280.0}))
    marks = {(mark["kernel"], mark["level"]): mark for mark in rows_of(spec, -1)}
    assert set(marks) == {(name, level) for name in ("naive", "block_tile") for level in ("L1", "L2", "DRAM")}
    for one, gflops in ((naive, 6280.0), (tiled, tiled.roofline.bound_gflops)):
        levels = {level.name: level for level in one.roofline.levels}
        for name, level in (("L1", "L1"), ("L2", "L2"), ("DRAM", "DRAM at 4096x4096x4096")):
            mark = marks[one.subject.kernel.id, name]
            assert (mark["low"], mark["x"]) == (levels[level].intensity_least, levels[level].intensity_most)
            assert mark["y"] == pytest.approx(gflops / 1e3)
    write_roofline(tmp_path / "roof.svg", [naive])
    drawn = (tmp_path / "roof.svg").read_text(encoding="utf-8")
    assert {"Roofline on H200", "FMA peak 66.9", "naive"} <= set(re.findall(r"<text[^>]*>([^<]+)</text>", drawn))
    with pytest.raises(UsageError, match="one GPU"):
        under_roof([naive, explain(find_kernel("naive"), *machine("", "H100"), {}, "64")])


def test_a_roofline_that_could_not_be_written_is_refused_first(tmp_path: Path) -> None:
    require_drawable(None)
    require_drawable(tmp_path / "roof.html")
    with pytest.raises(UsageError, match=r"\.svg, \.png, \.html"):
        require_drawable(tmp_path / "roof.pdf")
    with pytest.raises(UsageError, match="no folder"):
        require_drawable(tmp_path / "none" / "roof.svg")
