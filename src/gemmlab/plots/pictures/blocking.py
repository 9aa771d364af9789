"""Picture of the order in which a CPU kernel accesses its matrices, and of the caches' contents during the run."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.observe.element_use import CacheContents, ElementUse, cache_contents, find_element_use
from gemmlab.ops.catalog import find_op
from gemmlab.plots.chart import BLUE, SKY, VegaChart
from gemmlab.plots.gpu_ladder import climb_colour
from gemmlab.plots.pictures.drawing import Drawing, Subject
from gemmlab.plots.pictures.owners import pieces
from gemmlab.plots.pictures.sheet import BESIDE, Sheet
from gemmlab.probes.cachesim import REFERENCE, Caches

MOMENT = 0.6
"""Fraction of the run after which the picture shows the caches' contents."""
_PARTS = 10
_NEVER = "never"
ORDER = {
    **{f"{10 * part} - {10 * part + 10} %": climb_colour(part / (_PARTS - 1)) for part in range(_PARTS)},
    _NEVER: "#eeeeee",
}
LEVELS = {"in neither": "#e4e4e4", "in L1": BLUE, "in L2": SKY}
"""Cache levels and their colours, in the order of the numbers in `CacheContents.level`."""
_CELLS = 84
"""Most cells across the picture."""
_GAP = 3.0
_SQUARE = 7.0
Values = npt.NDArray[np.int64]


def blocking_chart(use: ElementUse, caught: CacheContents, caches: Caches) -> VegaChart:
    """Draw the three matrices twice, coloured by the time of use and by the cache that contains them.

    B is above C, and A at the left of C. Below them is the workspace, coloured by the cache, if the kernel uses one.
    """
    step = _step(use)
    by_time = Sheet(_SQUARE)
    times = {
        name: _coarse(
            _parts(use.last[name] if name == "c" else use.first[name], use.accesses), step, earliest=name != "c"
        )
        for name in ("a", "b", "c")
    }
    _matrices(by_time, times, list(ORDER), step, use)
    by_time.word(0, -3.0, "When: A and B used first, C last", size=12, align="left")
    by_level = Sheet(_SQUARE)
    levels = {name: _majority(level, step) for name, level in caught.level.items()}
    bottom = _matrices(by_level, levels, list(LEVELS), step, use)
    sizes = f"L1 of {caches.l1.size >> 10} KiB, L2 of {caches.l2.size >> 10} KiB"
    by_level.word(
        0, -3.0, f"Where, after {caught.after / use.accesses:.0%} of all accesses: {sizes}", size=12, align="left"
    )
    _packed(by_level, use, caught, bottom + 3)
    both = [by_time.chart(ORDER, "part of the run", gap=0).spec, by_level.chart(LEVELS, gap=0).spec]
    return VegaChart({"vconcat": both, "spacing": 20, "resolve": {"scale": {"color": "independent"}}})


def _matrices(sheet: Sheet, cells: Mapping[str, Values], kinds: list[str], step: int, use: ElementUse) -> float:
    """Draw the three matrices from the sheet's origin; return the y of their lower end."""
    m, n, k = _extents(use)
    left, upper = len(cells["a"][0]) + _GAP, len(cells["b"]) + _GAP
    places = {"a": (0.0, upper, m, k), "b": (left, 0.0, k, n), "c": (left, upper, m, n)}
    for name, (x, y, rows, cols) in places.items():
        values = {(row, col): kind for row, line in enumerate(cells[name].tolist()) for col, kind in enumerate(line)}
        for piece in pieces(values):
            right, bottom = min(piece.col + piece.cols, cols / step), min(piece.row + piece.rows, rows / step)
            size = {"wide": right - piece.col, "high": bottom - piece.row}
            sheet.box(x + piece.col, y + piece.row, kinds[piece.owner], **size)
        sheet.frame(x, y, cols / step, rows / step, "#777777")
        sheet.word(x, y - 0.9, f"{name.upper()}  {rows} x {cols}", size=11, align="left", colour=BESIDE)
    return upper + len(cells["c"])


def _packed(sheet: Sheet, use: ElementUse, caught: CacheContents, y: float) -> None:
    """Draw the used part of the workspace as a strip at height `y`."""
    used = np.flatnonzero(use.workspace)
    if not used.size:
        return
    floats = int(used[-1]) + 1
    wide = min(_CELLS, floats)
    kinds = []
    for part in np.array_split(np.arange(floats), wide):
        mine = part[use.workspace[part] > 0]
        kinds.append("" if not mine.size else list(LEVELS)[_most(caught.packed[mine])])
    at = 0
    for kind, same in groupby(kinds):
        length = len(list(same))
        if kind:
            sheet.box(at, y, kind, wide=length, high=2)
        at += length
    sheet.frame(0, y, wide, 2, "#777777")
    sheet.word(
        0, y - 0.9, f"packed copies, {4 * floats >> 10} KiB as they lie in memory", size=11, align="left", colour=BESIDE
    )


def _step(use: ElementUse) -> int:
    """Return the number of elements along a cell's side, so that at most `_CELLS` cells are beside each other."""
    m, n, k = _extents(use)
    return -(-max(k + n, m + k) // _CELLS)


def _extents(use: ElementUse) -> tuple[int, int, int]:
    a, b = use.first["a"], use.first["b"]
    return len(a), len(b[0]), len(b)


def _parts(times: Values, accesses: int) -> Values:
    return np.where(times > 0, (times - 1) * _PARTS // accesses, _PARTS)


def _coarse(parts: Values, step: int, *, earliest: bool) -> Values:
    """Return the earliest or the latest part of the run in each cell; "never" only if none of its elements was used."""
    hidden = _PARTS if earliest else -1
    cells = _cells(np.where(parts == _PARTS, hidden, parts), step, hidden)
    found: Values = cells.min(axis=-1) if earliest else cells.max(axis=-1)
    return np.where(found == -1, _PARTS, found)


def _majority(levels: npt.NDArray[np.int8], step: int) -> Values:
    cells = _cells(levels.astype(np.int64), step, -1)
    found: Values = np.apply_along_axis(_most, -1, cells)
    return found


def _most(levels: npt.NDArray[Any]) -> int:
    """Return the most frequent level, not counting the padding of -1."""
    counts: list[int] = [int((levels == level).sum()) for level in range(len(LEVELS))]
    return counts.index(max(counts))


def _cells(values: Values, step: int, filling: int) -> Values:
    """Return an array of shape rows x columns x elements of a cell; cells at the edges are padded with `filling`."""
    rows, cols = (-(-extent // step) for extent in values.shape)
    padding = [(0, count * step - extent) for count, extent in zip((rows, cols), values.shape, strict=True)]
    full = np.pad(values, padding, constant_values=filling)
    return full.reshape(rows, step, cols, step).swapaxes(1, 2).reshape(rows, cols, step * step)


def _problem(subject: Subject) -> Any:
    """Return the problem to draw: the requested one, or by default one of two blocks in each direction.

    Blocks are those of the parameters MC, NC and KC. An extent is 128 without its parameter, and at most 512.
    """
    if subject.problem is not None:
        return subject.problem
    op, config = find_op(subject.kernel.op), subject.config
    most, usual = 512, 128
    m, n, k = (min(most, 2 * config.get(name, 0)) or usual for name in ("MC", "NC", "KC"))
    (problem,) = op.parse_sizes(f"{m}x{n}x{k}")
    return problem


def _draw(subject: Subject) -> VegaChart:
    kernel, config, problem = subject.kernel, subject.config, _problem(subject)
    op = find_op(kernel.op)
    if problem.layout != "nn":
        raise UsageError(f"{problem.label}: the order of loops can be drawn only for matrices that are not transposed")
    use = find_element_use(kernel, op, problem, config)
    caught = cache_contents(kernel, op, problem, REFERENCE, round(MOMENT * use.accesses), config)
    return blocking_chart(use, caught, REFERENCE)


DRAWING = Drawing(
    name="blocking",
    place=70,
    title="The order of the loops, and the contents of the caches",
    caption="From the addresses that the kernel uses. Above: the part of the run in which elements of A and B are "
    "first used and those of C last used; equal colours mean equal times. Below: the simulated cache that contains "
    "each element at one moment during the run.",
    applies=lambda subject: not subject.on_gpu and subject.kernel.op == "gemm",
    draw=_draw,
)
