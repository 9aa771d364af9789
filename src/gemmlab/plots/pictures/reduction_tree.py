"""Picture of the steps of a reduction: threads whose sums are used, threads whose sums are unused, and idle threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from gemmlab.core.counters import BARRIER, SHARED_LOAD, SHARED_STORE
from gemmlab.core.trace import LANES, Step, lanes_of
from gemmlab.observe.contributions import contributions
from gemmlab.observe.matrix_trace import KernelTrace
from gemmlab.plots.chart import BLUE, ORANGE, VegaChart
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.sheet import BESIDE, Sheet

USED, UNUSED, IDLE = "adds what is used", "adds for nothing", "idle"
COLOURS = {USED: BLUE, UNUSED: ORANGE, IDLE: "#e3e6ea"}
_PIXELS, _HIGH = 520.0, 17.0
SHUFFLE = "shuffle"
NAMES = {SHARED_LOAD: "shared", SHUFFLE: "shuffle"}


@dataclass
class Round:
    """One step of the tree, for all warps."""

    name: str
    working: set[int] = field(default_factory=set)
    """Threads that read another thread's value in this step."""
    used: set[int] = field(default_factory=set)
    """Threads among `working` whose sum contributes to the result."""

    def add(self, step: Step, of_use: int) -> None:
        """Add a warp's step. `of_use` is the mask of the lanes whose sum contributes to the result."""
        self.working |= _threads(step.warp, step.on)
        self.used |= _threads(step.warp, of_use)


def rounds(kernel_trace: KernelTrace) -> list[Round]:
    """Return the steps in which threads of the first block read other threads' values, by shared memory or shuffles.

    `observe.contributions` determines the values that contribute to the result.
    """
    used = contributions(kernel_trace)
    made: dict[tuple[int, int], Round] = {}
    # A step's place in the tree: barriers that its warp has passed, and changes from writing to reading since.
    passed: dict[int, tuple[int, int, str]] = {}
    for order, step in enumerate(kernel_trace.trace.steps):
        barriers, turn, last = passed.get(step.warp, (0, 0, ""))
        what = SHUFFLE if step.site.base_opcode == "SHFL" else step.site.kind
        if step.site.kind == BARRIER:
            passed[step.warp] = (barriers + 1, 0, "")
        elif what in NAMES or what == SHARED_STORE:
            # Consecutive loads belong to one step.
            again = what == SHUFFLE or (what == SHARED_LOAD and last == SHARED_STORE)
            turn += again and last != ""
            passed[step.warp] = (barriers, turn, what)
            if what in NAMES:
                made.setdefault((barriers, turn), Round(NAMES[what])).add(step, used.get(order, 0))
    return [made[place] for place in sorted(made)]


def _threads(warp: int, mask: int) -> set[int]:
    return {warp * LANES + lane for lane in lanes_of(mask)}


def _draw(subject: Subject) -> VegaChart:
    x, y, z = subject.trace.trace.threads
    threads, found = x * y * z, rounds(subject.trace)
    square = _PIXELS / threads
    sheet = Sheet(square=square, tall=_HIGH / square)
    for row, each in enumerate(found):
        kinds = [
            USED if thread in each.used else UNUSED if thread in each.working else IDLE for thread in range(threads)
        ]
        at = 0
        for kind, same in groupby(kinds):
            wide = len(list(same))
            sheet.box(at, row + 0.06, kind, wide=wide, high=0.88)
            at += wide
        sheet.word(-6 / square, row + 0.5, each.name, size=10, align="right", colour=BESIDE)
        label = f"{len(each.used)} of {len(each.working)}"
        sheet.word(threads + 6 / square, row + 0.5, label, size=10, align="left", colour=BESIDE)
    for warp in range(0, threads + 1, LANES):
        sheet.stroke(warp, -0.15, warp, len(found), "#888888", width=0.7)
        if warp < threads:
            sheet.word(warp + LANES / 2, -0.5, f"w{warp // LANES}", size=10, colour=BESIDE)
    sheet.word(threads + 62 / square, 0, " ")
    sheet.word(-50 / square, 0, " ")
    return sheet.chart(COLOURS, gap=0)


def _applies(subject: Subject) -> bool:
    return subject.on_gpu and subject.kernel.op == "reduce" and bool(rounds(subject.trace))


DRAWING = Drawing(
    name="reduction_tree",
    place=18,
    title="Steps of the reduction tree, with idle threads",
    caption="Each row is a step in which threads of the first block read each other's values, each column a thread; "
    "lines separate warps. Blue threads add a value that reaches the result, orange threads execute the same without "
    "effect on it, grey threads are idle; the numbers at the right count blue threads and all that execute.",
    applies=_applies,
    draw=_draw,
)
