"""Compare results with a reference element by element, and locate the wrong ones."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.elements import FLOAT32, Element
from gemmlab.core.hardware import usable_cpus
from gemmlab.ops.op import Expected, Float64Array

TILE = 32
WORST_TILES = 5
SOURCE_LIMIT = 1e-6
_BLOCK = 1 << 15
"""Elements compared at a time; with their temporaries they take a few MiB."""
_FEWEST_BLOCKS = 32
"""Fewer blocks than this are compared without threads."""


@dataclass(frozen=True, slots=True)
class TileCount:
    """Number of wrong elements in one 32 x 32 tile; `row` and `column` are those of the tile's first element."""

    row: int
    column: int
    wrong: int


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first wrong element of one output, in row-major order, and the distribution of all wrong ones over tiles."""

    output: str
    row: int
    column: int
    value: float
    reference: float
    tolerance: float
    wrong: int
    elements: int
    wrong_tiles: int
    worst_tiles: tuple[TileCount, ...]

    def brief(self) -> str:
        """Return the first wrong element and the number of wrong ones, in one line."""
        return (
            f"{self.output}[{self.row}, {self.column}] = {self.value:.9g}, reference {self.reference:.9g}; "
            f"{self.wrong} of {self.elements} elements wrong"
        )

    def explain(self) -> str:
        """Return the mismatch in one line: first wrong element, number of wrong ones, and the worst tiles."""
        tiles = ", ".join(f"{t.wrong} in rows {t.row}.., columns {t.column}.." for t in self.worst_tiles)
        more = "" if self.wrong_tiles <= len(self.worst_tiles) else f" (the worst of {self.wrong_tiles} tiles)"
        return (
            f"{self.output}[{self.row}, {self.column}] = {self.value:.9g}, reference {self.reference:.9g}, "
            f"tolerance {self.tolerance:.3g}; {self.wrong} of {self.elements} elements wrong; "
            f"by {TILE}x{TILE} tile: {tiles}{more}"
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome for one output. The ratios are over elements with a finite reference and bound."""

    mismatch: Mismatch | None
    worst_ratio: float
    """Largest error of an element divided by its bound: at most 1 if the output is right; infinite if an element is NaN
    or infinite where it must be finite, or has an error where its bound is 0.
    """
    source_error: float
    """Largest relative error of an element, divided by the number of terms of a result (`dot_length` of `compare`).

    The test in the published sources of the kernels passes below 1e-6.

    Elements that are NaN are left out: that test passes them, because no comparison with NaN is true.
    """


def compare(
    name: str, actual: npt.NDArray[Any], expected: Expected, dot_length: int, kind: Element = FLOAT32
) -> Comparison:
    """Compare `actual` (rows, cols), of the type `kind`, with float64 values and bounds of the same shape.

    An element is right if its error is at most the bound, if it is an infinity and a number within the bound rounds to
    that infinity in the type `kind`, if it and the reference are infinite with the same sign, or if both are NaN. An
    infinite bound accepts anything. `dot_length` is K; the largest relative error is also reported divided by it, as
    the test in the published sources of the kernels does.
    """
    rows = max(1, _BLOCK // max(1, actual.shape[1]))
    starts = range(0, actual.shape[0], rows)
    if len(starts) < _FEWEST_BLOCKS:
        found = [_judge(actual, expected.values, expected.bound, dot_length, kind)]
    else:
        # NumPy releases the interpreter lock while it computes, and blocks of rows stay in a core's cache.
        with ThreadPoolExecutor(len(usable_cpus())) as pool:
            found = list(
                pool.map(
                    lambda start: _judge(
                        actual[start : start + rows], expected.values[start : start + rows],
                        expected.bound[start : start + rows], dot_length, kind,
                    ),
                    starts,
                )
            )  # fmt: skip
    wrong = None if all(block.right is None for block in found) else ~np.concatenate([b.mask for b in found])
    mismatch = None if wrong is None else _mismatch(name, kind.widen(actual), expected, wrong)
    return Comparison(mismatch, max(b.worst_ratio for b in found), max(b.source_error for b in found))


@dataclass(frozen=True, slots=True)
class _Block:
    """The comparison of some rows of one output."""

    rows: int
    cols: int
    right: npt.NDArray[np.bool_] | None
    """True for each element that is right; `None` if all are."""
    worst_ratio: float
    source_error: float

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        return np.ones((self.rows, self.cols), np.bool_) if self.right is None else self.right


def _judge(
    actual: npt.NDArray[Any], values: Float64Array, bound: Float64Array, dot_length: int, kind: Element
) -> _Block:
    wide = kind.widen(actual)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error = np.abs(wide - values)
        right = error <= bound
        if right.all() and np.isfinite(bound).all():
            # The common case: both comparisons hold only if everything is finite.
            off = error > 0
            ratio = np.divide(error, bound, out=np.zeros_like(error), where=off)
            relative = np.divide(error, np.abs(wide), out=np.zeros_like(error), where=off)
            return _Block(wide.shape[0], wide.shape[1], None, _most(ratio), _most(relative) / max(1, dot_length))
        right |= (wide == values) | (np.isnan(wide) & np.isnan(values)) | np.isinf(bound)
        # A tolerance that reaches past the largest number of the type allows infinity of that sign.
        right |= np.isinf(wide) & (np.copysign(1.0, wide) * values + bound >= kind.overflow)
        finite = np.isfinite(values) & np.isfinite(bound)
        ratio = np.where(finite & (error > 0), error / bound, 0.0)
        ratio = np.where(finite & np.isinf(wide) & right, 0.0, ratio)
        relative = np.where(finite & (error > 0), error / np.abs(wide) / max(1, dot_length), 0.0)
    worst = _largest(ratio)
    if finite.any() and np.isnan(wide[finite]).any():
        worst = math.inf
    return _Block(wide.shape[0], wide.shape[1], None if right.all() else right, worst, _largest(relative))


def _most(values: Float64Array) -> float:
    return float(values.max()) if values.size else 0.0


def _largest(values: npt.NDArray[np.float64]) -> float:
    finite = values[~np.isnan(values)]
    return float(finite.max()) if finite.size else 0.0


def _mismatch(
    name: str, actual: npt.NDArray[np.float64], expected: Expected, wrong: npt.NDArray[np.bool_]
) -> Mismatch | None:
    rows, columns = np.nonzero(wrong)
    if rows.size == 0:
        return None
    first = int(rows[0]), int(columns[0])
    tiles, counts = np.unique(np.stack((rows // TILE, columns // TILE)), axis=1, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:WORST_TILES]
    worst = tuple(TileCount(int(tiles[0, i]) * TILE, int(tiles[1, i]) * TILE, int(counts[i])) for i in order)
    return Mismatch(
        output=name, row=first[0], column=first[1], value=float(actual[first]),
        reference=float(expected.values[first]), tolerance=float(expected.bound[first]),
        wrong=int(rows.size), elements=int(wrong.size), wrong_tiles=int(counts.size), worst_tiles=worst,
    )  # fmt: skip


def plain(item: Any) -> Any:
    """Return dataclasses, dicts and lists as JSON values; NaN and infinity become text."""
    if isinstance(item, float):
        return item if math.isfinite(item) else str(item)
    if isinstance(item, dict):
        return {key: plain(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [plain(value) for value in item]
    return plain(asdict(item)) if hasattr(item, "__dataclass_fields__") else item
