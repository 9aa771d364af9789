"""The picture of a pipeline: warps that meet at mbarriers, stages that fill and empty."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gemmlab.core.trace import MbarrierEvent
from gemmlab.plots.pictures.catalog import find_drawing
from gemmlab.plots.pictures.kinds import BARRIER, GLOBAL, MATH, OTHER
from gemmlab.plots.pictures.pipeline import Span
from gemmlab.plots.pictures.stage_timeline import FULL, IN_USE, UNDER_WAY, stage_timeline
from gemmlab.plots.pictures.stages import waits_in_words
from gemmlab.plots.pictures.warp_replay import COPY_CYCLES, FOR_ARRIVALS, FOR_BLOCK, FOR_COPIES, FOR_PRODUCTS
from gemmlab.sass.instruction import Control, Instruction
from support.cuda_source import needs_compiler
from support.picture_charts import svg_texts
from support.picture_subjects import subject
from support.sass_corpus import written

COPY, TRY = "UTMALDG.2D [UR4], [UR12]", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R17+URZ], R16"
ARRIVE, WORK, MEET = "SYNCS.ARRIVE.TRANS64 RZ, [R11+URZ], R14", "NOP", "BAR.SYNC 0x0"
FULL_AT, EMPTY_AT = 64, 128


def timed(text: str, stall: int) -> Instruction:
    (instruction,) = written(text).instructions
    return replace(instruction, control=Control(stall, True, 7, 7, 0, 0))


def event(order: int, kind: str, warp: int, address: int, phase: int, block: int = 0) -> MbarrierEvent:
    name = {FULL_AT: "full[0]", EMPTY_AT: "empty[0]"}[address]
    return MbarrierEvent(order, kind, block, warp, 0, address, name, phase)


# One stage: warp 0 fills it twice, warp 1 reads it. The trace has warp 0 as far as it comes, as an emulator would.
STEPS = [
    (0, COPY, 10), (0, TRY, 1), (1, TRY, 1), (1, WORK, 50), (1, ARRIVE, 2), (0, TRY, 1), (0, COPY, 10),
    (1, TRY, 1), (1, WORK, 50), (1, ARRIVE, 2),
]  # fmt: skip
EVENTS = [
    event(0, "copy", 0, FULL_AT, 0), event(2, "pass", 1, FULL_AT, 0), event(4, "arrive", 1, EMPTY_AT, 0),
    event(5, "pass", 0, EMPTY_AT, 0), event(6, "copy", 0, FULL_AT, 1), event(7, "pass", 1, FULL_AT, 1),
    event(9, "arrive", 1, EMPTY_AT, 1),
]  # fmt: skip


def steps(*shown: tuple[int, str, int]) -> list[tuple[int, Instruction]]:
    return [(warp, timed(text, stall)) for warp, text, stall in shown]


def test_a_stage_fills_is_read_and_is_free_when_the_warp_that_refills_it_goes_on() -> None:
    line = stage_timeline(steps(*STEPS), EVENTS)
    landed = 10 + COPY_CYCLES
    emptied = landed + 1 + 50 + 2
    issued = emptied + 1 + 10
    # The wait at step 1 did not end: the warp tries it again at step 5.
    assert line.warps[0] == (
        Span(GLOBAL, 0, 10), Span(FOR_ARRIVALS, 10, emptied), Span(BARRIER, emptied, emptied + 1),
        Span(GLOBAL, emptied + 1, issued),
    )  # fmt: skip
    again = issued + COPY_CYCLES
    assert line.warps[1][0] == Span(FOR_COPIES, 0, landed)
    assert line.warps[1][-4:] == (
        Span(FOR_COPIES, emptied, again), Span(BARRIER, again, again + 1), Span(OTHER, again + 1, again + 51),
        Span(BARRIER, again + 51, again + 53),
    )  # fmt: skip
    assert line.stages[FULL_AT] == (
        Span(UNDER_WAY, 10, landed), Span(IN_USE, landed, emptied),
        Span(UNDER_WAY, issued, again), Span(IN_USE, again, again + 53),
    )  # fmt: skip
    assert line.full() == [(0, 0), (landed, 1), (emptied, 0), (again, 1), (again + 53, 0)]
    assert [(wait.warp, wait.address) for wait in line.waits] == [(1, FULL_AT), (0, EMPTY_AT), (1, FULL_AT)]


def test_a_stage_that_nobody_waits_for_yet_is_full() -> None:
    late = [(0, COPY, 10), (1, WORK, 15), *[(1, WORK, 15)] * 99, (1, TRY, 1), (1, ARRIVE, 2)]
    events = [event(0, "copy", 0, FULL_AT, 0), event(101, "pass", 1, FULL_AT, 0), event(102, "arrive", 1, EMPTY_AT, 0)]
    (spans,) = stage_timeline(steps(*late), events).stages.values()
    assert spans == (
        Span(UNDER_WAY, 10, 10 + COPY_CYCLES),
        Span(FULL, 10 + COPY_CYCLES, 1500),
        Span(IN_USE, 1500, 1503),
    )


def test_warps_meet_at_a_barrier_of_the_block_and_share_a_tensor_core() -> None:
    product, wait = "HGMMA.64x128x8.F32.TF32 R24, gdesc[UR4], R24, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x0"
    line = stage_timeline(
        steps((0, WORK, 9), (4, WORK, 2), (0, MEET, 1), (4, MEET, 1), (0, product, 1), (0, wait, 1), (4, product, 1),
              (4, wait, 1)),
        [],
    )  # fmt: skip
    # Both warps are in partition 0; a product takes 64 cycles of its tensor core.
    assert line.warps[4][:3] == (Span(OTHER, 0, 2), Span(BARRIER, 2, 3), Span(FOR_BLOCK, 3, 10))
    ends = sorted((line.warps[warp][-1] for warp in (0, 4)), key=lambda span: span.end)
    assert ends == [Span(FOR_PRODUCTS, 12, 75), Span(FOR_PRODUCTS, 12, 139)]
    assert {span.kind for span in line.warps[0]} == {OTHER, BARRIER, MATH, FOR_PRODUCTS}


def test_the_waits_are_told_in_words() -> None:
    line = stage_timeline(steps(*STEPS), EVENTS)
    first, second, stages = waits_in_words(line, EVENTS)
    assert first.startswith("warp 1 waits at full for copies by warp 0: ")
    assert second.startswith("warp 0 waits at empty for arrivals of warp 1: ")
    assert stages.startswith("1 stage; on average ")


@needs_compiler
@pytest.mark.slow
def test_a_pipeline_of_a_kernel_is_drawn() -> None:
    of, drawing = subject("warp_specialized"), find_drawing("stages")
    assert drawing.applies(of)
    assert not drawing.applies(subject("async_copy"))
    said = " ".join(svg_texts(drawing.draw(of)))
    assert "warps 4 - 11 wait at mbarriers of copies for copies by warp 0" in said
    assert "4 stages; on average" in said
