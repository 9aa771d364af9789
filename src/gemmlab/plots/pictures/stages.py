"""Picture of a pipeline: the warps of a block that wait for each other at mbarriers, and how many stages are full."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from gemmlab.core.trace import MbarrierEvent
from gemmlab.core.words import counted
from gemmlab.plots.chart import VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.kinds import KINDS, WAITS, instructions_of
from gemmlab.plots.pictures.owners import ranges
from gemmlab.plots.pictures.sheet import BESIDE, Sheet
from gemmlab.plots.pictures.stage_timeline import FULL, IN_USE, UNDER_WAY, StageTimeline, stage_timeline
from gemmlab.plots.pictures.warp_replay import COPY_CYCLES, FOR_ARRIVALS, FOR_BLOCK, FOR_COPIES, FOR_PRODUCTS
from gemmlab.plots.pictures.warps import BAR, HIGH, WIDTH, draw_scale, draw_warps
from gemmlab.sass.instruction import Instruction

_COLOURS = {
    **KINDS, FOR_COPIES: WAITS, FOR_ARRIVALS: "#d9c8e8", FOR_PRODUCTS: "#bcd9ec", FOR_BLOCK: "#eeeeee",
    UNDER_WAY: "#f6cdb8", FULL: "#b9e4d6", IN_USE: "#8c6bb1",
}  # fmt: skip
_GAP = 14.0
_INDEX = re.compile(r"\[\d+\]")


def stages_chart(line: StageTimeline, events: Sequence[MbarrierEvent], block: int = 0) -> VegaChart:
    """Draw the warps' rows, a row for each stage, a line with the number of full stages, and who waits for whom."""
    sheet, scale = Sheet(square=1.0), WIDTH / max(1, line.cycles)
    bottom = draw_warps(sheet, line.warps, line.cycles) + _GAP
    for number, spans in enumerate(line.stages.values()):
        sheet.word(-8, bottom + BAR / 2, f"stage {number}", size=10, align="right", colour=BESIDE)
        for span in spans:
            sheet.box(span.begin * scale, bottom, span.kind, wide=(span.end - span.begin) * scale, high=BAR)
        bottom += HIGH
    bottom += _GAP / 2
    sheet.word(-8, bottom + 2 * HIGH / 2, "stages full", size=10, align="right", colour=BESIDE)
    _draw_count(sheet, line, bottom, 2 * HIGH)
    bottom += 2 * HIGH
    draw_scale(sheet, line.cycles, bottom)
    for place, text in enumerate(waits_in_words(line, events, block)):
        sheet.word(0, bottom + 44 + 15 * place, text, size=11, align="left", colour=BESIDE)
    return sheet.chart(_COLOURS, gap=0)


def _draw_count(sheet: Sheet, line: StageTimeline, top: float, high: float) -> None:
    scale, most = WIDTH / max(1, line.cycles), max(1, len(line.stages))
    steps = [*line.full(), (line.cycles, 0)]
    for level in range(most + 1):
        y = top + high * (1 - level / most)
        sheet.stroke(0, y, WIDTH, y, "#dddddd", width=0.6)
    for (since, count), (until, following) in pairwise(steps):
        y, after = (top + high * (1 - number / most) for number in (count, following))
        sheet.stroke(since * scale, y, until * scale, y, "#000000", width=1.4)
        if until < line.cycles:
            sheet.stroke(until * scale, y, until * scale, after, "#000000", width=1.4)
    sheet.word(WIDTH + 6, top + 4, f"{most}", size=10, align="left", colour=BESIDE)
    sheet.word(WIDTH + 6, top + high - 4, "0", size=10, align="left", colour=BESIDE)


def waits_in_words(line: StageTimeline, events: Sequence[MbarrierEvent], block: int = 0) -> Iterator[str]:
    """Yield a sentence for each group of mbarriers at which warps wait: which warps wait there, and for whom.

    The last sentence is about full stages.
    """
    groups: dict[str, set[int]] = defaultdict(set)
    for event in events:
        if event.owner == block:
            groups[_group(event, line)].add(event.address)
    for name, addresses in groups.items():
        by_kind: dict[str, set[int]] = defaultdict(set)
        for event in events:
            if event.owner == block and event.address in addresses and event.phase >= 0:
                by_kind["far" if event.block != block else event.kind].add(event.warp)
        share = _share_of_waits(line, addresses)
        copies, others = by_kind["copy"], by_kind["arrive"] - by_kind["copy"]
        sources = [f"copies by {_warps(copies)}"] if copies else []
        sources += [f"arrivals of {_warps(others)}"] if others else []
        sources += ["other blocks of the cluster"] if by_kind["far"] else []
        if by_kind["pass"] and sources:
            waiting = by_kind["pass"]
            verb = "waits" if len(waiting) == 1 else "wait"
            yield f"{_warps(waiting)} {verb} at {name} for {' and '.join(sources)}: {share:.0%} of the time"
    yield (
        f"{counted(len(line.stages), 'stage')}; on average {line.mean_full:.1f} are full or in use. "
        f"A copy takes {COPY_CYCLES} cycles here."
    )


def _group(event: MbarrierEvent, line: StageTimeline) -> str:
    """Return the name of an mbarrier's array; without a name `"mbarriers of copies"` or `"mbarriers of arrivals"`."""
    if event.name.startswith("at "):
        return "mbarriers of copies" if event.address in line.stages else "mbarriers of arrivals"
    return _INDEX.sub("", event.name)


def _share_of_waits(line: StageTimeline, addresses: Iterable[int]) -> float:
    """Return the fraction of their whole time that the warps which wait at `addresses` spend in these waits."""
    here = [wait for wait in line.waits if wait.address in set(addresses)]
    warps = {wait.warp for wait in here}
    whole = sum(line.warps[warp][-1].end for warp in warps)
    return sum(wait.span.end - wait.span.begin for wait in here) / whole if whole else 0.0


def _warps(numbers: Iterable[int]) -> str:
    """Return warps in words: `"warp 0"`, `"warps 4 - 11"`, `"warps 0, 4 - 7"`."""
    several = list(numbers)
    return f"warp{'s' if len(several) > 1 else ''} {ranges(several).replace('-', ' - ')}"


def _steps(subject: Subject) -> Iterator[tuple[int, Instruction]]:
    """Return (warp, instruction) of each step of the first block, which alone is traced."""
    steps = subject.deep.trace.steps
    return zip(steps.columns["warp"].tolist(), instructions_of(steps, subject.deep.function), strict=True)


def _draw(subject: Subject) -> VegaChart:
    events = subject.deep.trace.mbarriers
    return stages_chart(stage_timeline(_steps(subject), events), events)


DRAWING = Drawing(
    name="stages",
    place=65,
    title="Pipeline of copies: who waits for whom, and how many stages are full",
    caption="The first block as it was executed at a problem with many steps along k. Adjacent warps that do the same "
    "share a row. Below are the stages: shared memory whose copies count their bytes at one mbarrier. A stage is in "
    "use from the end of the first wait for its bytes until the warp that refills it may go on. Time is the sum of "
    "stall fields; at an mbarrier a warp waits for the latest arrival and the last copy of the phase.",
    applies=lambda subject: subject.on_gpu and any(event.kind == "copy" for event in subject.trace.trace.mbarriers),
    draw=_draw,
)
