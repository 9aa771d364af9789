"""Pictures from machine code and the order of its execution: time lines, the strip of the main loop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gemmlab.kernels.catalog import find_kernel
from gemmlab.plots.pictures import issue, pipeline, register_tile, warps
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.kinds import ADDRESS, GLOBAL, LOAD, MATH, executed_by, loop_code
from gemmlab.plots.pictures.pipeline import Span, ticks, timeline
from gemmlab.plots.pictures.warps import WAITING, block_timeline
from gemmlab.sass.instruction import Control, Instruction
from support.picture_charts import found, svg_texts
from support.picture_subjects import subject
from support.sass_corpus import written

IDLE = Control(1, True, 7, 7, 0, 0)


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


def test_products_of_warpgroups_are_under_way_until_their_group_is_waited_for() -> None:
    product, last = "HGMMA.64x128x8.F32.TF32 R24, gdesc[UR4], R24", "HGMMA.64x128x8.F32.TF32 R24, gdesc[UR4], R24, gsb0"
    wait = "WARPGROUP.DEPBAR.LE gsb0, 0x{}"
    codes = (product, last, product, last, wait.format(1), "NOP", wait.format(0), last)
    line = timeline([timed(code, 16 * place) for place, code in enumerate(codes)], header=-1)
    assert sorted((span.begin, span.end) for span in line.flights) == [(0, 4), (1, 4), (2, 6), (3, 6), (7, 8)]
    assert {span.kind for span in line.flights} == {MATH}


def test_boxes_are_under_way_until_the_wait_at_their_barrier() -> None:
    announce, box = "SYNCS.ARRIVE.TRANS64 RZ, [R11+URZ+0x3000], R14", "UTMALDG.2D [UR4], [UR12]"
    wait, other = (f"SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R17+URZ+0x{at}], R16" for at in (3000, 3020))
    codes = [(announce, 0), (box, 1), (box, 2), (announce, 0), (box, 1), (other, 3), (wait, 4), (wait, 4)]
    line = timeline([timed(code, 16 * place) for code, place in codes], header=-1)
    # The second stage is not waited for: the same wait is only tried again.
    assert sorted(line.flights, key=lambda span: span.begin) == [Span(GLOBAL, 1, 6), Span(GLOBAL, 2, 6)]


@pytest.mark.slow
def test_the_copies_and_products_of_a_kernel_for_hopper_are_under_way() -> None:
    hopper = subject("tma_pipeline")
    kinds = {span.kind for span in timeline(executed_by(hopper, 0), loop_code(hopper).header).flights}
    assert {GLOBAL, MATH} <= kinds


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


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
def test_two_buffers_load_while_they_compute_and_one_does_not() -> None:
    assert overlap("block_tile") == 0
    assert overlap("register_stage") == 0
    assert overlap("double_buffer") > 0.7
    assert overlap("async_copy") > 0.95


@pytest.mark.in_turns(20)
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


@pytest.mark.in_turns(20)
def test_the_strip_has_a_number_for_every_stall_above_one() -> None:
    code = loop_code(subject("register_stage")).instructions
    texts = svg_texts(issue.issue_chart(code))
    wanted = sorted(str(i.control.stall) for i in code if i.control.stall > 1)
    assert sorted(text for text in texts if text.isdigit()) == wanted
