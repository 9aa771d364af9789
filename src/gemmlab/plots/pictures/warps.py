"""Picture of the timelines of all warps in a block, from barrier to barrier: their instructions and waits.

The time between two barriers is the sum of a warp's stall fields, as if each warp had an issue slot to itself; at a
barrier all warps wait for the last one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from gemmlab.core.trace import LANES
from gemmlab.plots.chart import VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.kinds import KINDS, executed_by, kind_of, loop_code
from gemmlab.plots.pictures.pipeline import Span, ticks
from gemmlab.plots.pictures.sheet import BESIDE, Sheet
from gemmlab.sass.instruction import Instruction

WAITING = "waits for other warps"
_ROUNDS = {"gemm": 2, "reduce": 8}
"""Iterations of the main loop to draw. A reduction's are short and differ from each other, so that more are drawn."""
WIDTH, HIGH, BAR = 820, 16.0, 13.0
"""Width of a timeline, distance of its rows, and height of a bar, in pixels."""
_COLUMNS = 410


@dataclass(frozen=True, slots=True)
class BlockTimeline:
    """The timelines of all warps of a block."""

    warps: tuple[tuple[Span, ...], ...]
    """Consecutive spans of each warp, by the warp's number."""
    barriers: tuple[int, ...]
    """Cycles at which the last warp arrives at each barrier."""
    cycles: int
    """Cycle at which the timeline ends."""


def block_timeline(executed: Sequence[Sequence[Instruction]], header: int, rounds: int) -> BlockTimeline:
    """Return the timelines of warps from the instructions executed, up to `rounds` iterations of the main loop.

    `header` is the address of the loop's first instruction.
    """
    stretches = [_between_barriers(_until(warp, header, rounds)) for warp in executed]
    warps: list[list[Span]] = [[] for _warp in executed]
    barriers: list[int] = []
    start = end = 0
    for number in range(max(map(len, stretches), default=0)):
        arrivals = []
        for spans, parts in zip(warps, stretches, strict=True):
            time = start
            for instruction in parts[number] if number < len(parts) else ():
                following, kind = time + max(1, instruction.control.stall), kind_of(instruction)
                joins = bool(spans) and (spans[-1].kind, spans[-1].end) == (kind, time)
                spans.append(Span(kind, spans.pop().begin if joins else time, following))
                time = following
            if number + 1 < len(parts):
                arrivals.append((spans, time))
            end = max(end, time)
        if arrivals:
            start = max(time for _spans, time in arrivals)
            barriers.append(start)
            for spans, time in arrivals:
                if time < start:
                    spans.append(Span(WAITING, time, start))
    return BlockTimeline(tuple(map(tuple, warps)), tuple(barriers), end)


def _until(executed: Sequence[Instruction], header: int, rounds: int) -> Sequence[Instruction]:
    starts = [place for place, instruction in enumerate(executed) if instruction.address == header]
    return executed[: starts[rounds]] if len(starts) > rounds else executed


def _between_barriers(executed: Sequence[Instruction]) -> list[list[Instruction]]:
    """Split instructions at barriers: each part but the last ends with a barrier."""
    parts: list[list[Instruction]] = [[]]
    for instruction in executed:
        parts[-1].append(instruction)
        if instruction.opcode == "BAR":
            parts.append([])
    return parts


def warps_chart(line: BlockTimeline) -> VegaChart:
    """Draw one row per warp, or one for adjacent warps that do the same.

    Time is cut into equal pieces, each in the colour of what takes most of it: a kind of instruction, or waiting.
    """
    sheet, scale = Sheet(square=1.0), WIDTH / max(1, line.cycles)
    bottom = draw_warps(sheet, line.warps, line.cycles)
    for time in line.barriers:
        sheet.stroke(time * scale, -4, time * scale, bottom, "#000000", width=1.2)
    draw_scale(sheet, line.cycles, bottom)
    return sheet.chart({**KINDS, WAITING: "#eeeeee"}, gap=0)


def draw_warps(sheet: Sheet, warps: Sequence[Sequence[Span]], cycles: int) -> float:
    """Draw one row per warp, or one for adjacent warps that do the same; return the lower edge of the last row."""
    warp, bottom = 0, 0.0
    for pieces, alike in groupby(_pieces(spans, cycles) for spans in warps):
        last = warp + len(list(alike)) - 1
        name = f"warp {warp}" if last == warp else f"warps {warp} - {last}"
        sheet.word(-8, bottom + BAR / 2, name, size=10, align="right", colour=BESIDE)
        at = 0
        for kind, same in groupby(pieces):
            wide = len(list(same))
            if kind:
                sheet.box(at * WIDTH / _COLUMNS, bottom, kind, wide=wide * WIDTH / _COLUMNS, high=BAR)
            at += wide
        warp, bottom = last + 1, bottom + HIGH
    return bottom


def draw_scale(sheet: Sheet, cycles: int, bottom: float) -> None:
    """Write the scale of cycles below `bottom`."""
    for number in ticks(cycles):
        sheet.word(number * WIDTH / max(1, cycles), bottom + 8, f"{number}", size=10, colour=BESIDE)
    sheet.word(WIDTH, bottom + 24, "cycles by stall fields", size=10, align="right", colour=BESIDE)
    sheet.word(-90, 0, " ")


def _pieces(spans: Sequence[Span], cycles: int) -> list[str]:
    """Return the kind that takes most of each of `_COLUMNS` equal pieces of time; `""` if nothing runs in a piece."""
    taken: list[dict[str, float]] = [{} for _piece in range(_COLUMNS)]
    for span in spans:
        begin, end = (time * _COLUMNS / max(1, cycles) for time in (span.begin, span.end))
        for piece in range(int(begin), min(_COLUMNS, int(end) + 1)):
            part = min(end, piece + 1) - max(begin, piece)
            taken[piece][span.kind] = taken[piece].get(span.kind, 0.0) + part
    return [max(kinds, key=lambda kind: kinds[kind]) if kinds else "" for kinds in taken]


def _draw(subject: Subject) -> VegaChart:
    count = -(-math.prod(subject.trace.trace.threads) // LANES)
    executed = [executed_by(subject, warp) for warp in range(count)]
    return warps_chart(block_timeline(executed, loop_code(subject).header, _ROUNDS[subject.kernel.op]))


DRAWING = Drawing(
    name="warps",
    place=66,
    title="All warps of a block, from barrier to barrier",
    caption="The first block as it was executed, up to two iterations of the main loop (eight in a reduction). "
    "Adjacent warps that do the same share a row; black lines are the block's barriers. Time is the sum of stall "
    "fields in cycles, as if each warp had an issue slot to itself.",
    applies=lambda subject: subject.on_gpu and bool(loop_code(subject).instructions),
    draw=_draw,
)
