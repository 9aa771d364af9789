"""The extents of pieces: those with the least predicted time within a bound on memory, or those with the fewest bytes
to copy if no time can be predicted.

k is not cut, because a kernel's sum over all of k has other bits than two sums over parts of k, added.

A step copies one panel, and a part of the next strip's panel, while one piece is multiplied, and takes as long as the
slower of the two. A strip is a row or a column of pieces, all with one panel, which stays on the device.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.dispatch.piece_plan import OPERANDS, PiecePlan

Seconds = Callable[[int, int], float | None]
_AS_FAST = 1.01


@dataclass(frozen=True, slots=True)
class Limits:
    """Requirements of the kernel and the arrays on pieces."""

    tile: tuple[int, int] = (1, 1)
    """(rows, columns): pieces begin at multiples of these numbers: tiles of the kernel, or whole chunks of a result,
    about as many as a tile has.
    """
    whole: tuple[bool, bool] = (False, False)
    """True for an axis of C (rows, columns) that is not cut."""
    workspace: Callable[[int, int], int] = field(default=lambda _rows, _cols: 0)
    """Function that returns the bytes of workspace, besides operands and result, for a piece computed with that many
    rows and columns.
    """
    seconds: Seconds = field(default=lambda _rows, _cols: None)
    """Function that returns the estimated time of the product for a piece of that many rows and columns, in seconds;
    `None` if unknown.
    """
    flushed: Callable[[PiecePlan], int] = field(default=lambda _plan: 0)
    """Function that returns about the bytes that are written besides those of C, because each piece is flushed."""
    purpose: str = "the kernel"
    """The purpose of the workspace, for messages."""


@lru_cache(maxsize=64)
def cut(frame: PiecePlan, limits: Limits) -> PiecePlan:
    """Return the plan for a product with the best pieces that `frame.memory_bytes` allow.

    `frame` is a plan whose extents of pieces are ignored. Raises `UsageError` if the memory is too small for any
    pieces.
    """
    smallest = _smallest(frame, limits)
    frame = replace(frame, least_bytes=smallest.device_bytes)
    if smallest.device_bytes > frame.memory_bytes:
        besides = f" and {smallest.workspace_bytes:,} for {limits.purpose}" if smallest.workspace_bytes else ""
        raise UsageError(
            f"gemm: memory_bytes is {frame.memory_bytes:,}; {frame.m} x {frame.n} with {frame.k} terms takes at least "
            f"{smallest.device_bytes:,}, for pieces of {smallest.rows} x {smallest.cols}{besides}"
        )
    plans = [_predicted(plan, limits) for plan in _plans(frame, limits)]
    least = min(plan.seconds or 0.0 for plan in plans)
    # Of plans that are about as fast, take the one that uses the link least: it may be slower than assumed.
    able = [plan for plan in plans if (plan.seconds or 0.0) <= _AS_FAST * least]
    return min(able, key=lambda plan: (plan.bytes_read + limits.flushed(plan), plan.count))


def sized(frame: PiecePlan, limits: Limits, rows: int, cols: int, path: Path) -> PiecePlan:
    """Return the plan with pieces of these extents, which the journal at `path` has from an earlier run.

    Raises `UsageError` if they do not fit.
    """
    frame = replace(frame, least_bytes=_smallest(frame, limits).device_bytes)
    both = (_sized(replace(frame, by_rows=each), limits, rows, cols) for each in (True, False))
    found = min((_predicted(plan, limits) for plan in both), key=lambda plan: (plan.seconds or 0.0, plan.bytes_in))
    if found.device_bytes > frame.memory_bytes:
        raise UsageError(
            f"gemm: memory_bytes is {frame.memory_bytes:,}; the checkpoint {path} was begun with pieces of "
            f"{rows} x {cols}, which take {found.device_bytes:,}; allow as much, or remove {path} to begin anew"
        )
    return found


def _smallest(frame: PiecePlan, limits: Limits) -> PiecePlan:
    """Return the plan that needs the least memory: an axis that is not cut needs no second slot."""
    extents = [[_extent(frame, limits, axis, count) for count in (1, math.inf)] for axis in (0, 1)]
    plans = (_sized(frame, limits, rows, cols) for rows, cols in itertools.product(*extents))
    return min(plans, key=lambda plan: plan.device_bytes)


def _plans(frame: PiecePlan, limits: Limits) -> Iterator[PiecePlan]:
    def sized(rows: int, count: int) -> PiecePlan:
        return _sized(frame, limits, rows, _extent(frame, limits, 1, count))

    def bare(rows: int, count: int) -> PiecePlan:
        return replace(frame, rows=rows, cols=_extent(frame, limits, 1, count), workspace_bytes=0)

    def fewest(make: Callable[[int, int], PiecePlan], rows: int, low: int) -> int:
        """Return the fewest panels of B, at least `low`, with which a plan fits; all, if it never does."""
        high = _most(frame, limits, 1)
        while low < high:
            middle = (low + high) // 2
            if make(rows, middle).device_bytes <= frame.memory_bytes:
                high = middle
            else:
                low = middle + 1
        return low

    for rows in _extents(frame, limits, 0):
        # Try the fewest panels of B that fit, then some more: with shorter panels the first product begins earlier.
        # To compute the workspace takes time, so it is left out first.
        low = fewest(bare, rows, 1)
        if sized(rows, low).device_bytes > frame.memory_bytes:
            low = fewest(sized, rows, low)
        for cols in {_extent(frame, limits, 1, count) for count in (1, low, low + 1, low + 2, 2 * low, 4 * low)}:
            plan = _sized(frame, limits, rows, cols)
            if plan.device_bytes <= frame.memory_bytes:
                yield from (replace(plan, by_rows=by_rows) for by_rows in (True, False))


def _most(frame: PiecePlan, limits: Limits, axis: int) -> int:
    """Return the largest possible number of pieces along an axis of C: 0 for rows, 1 for columns."""
    extent = (frame.m, frame.n)[axis]
    return 1 if limits.whole[axis] else max(1, -(-extent // _tile(frame, limits, axis)))


def _tile(frame: PiecePlan, limits: Limits, axis: int) -> int:
    """Return the least extent of pieces: whole tiles, with at least the rows or columns that `frame.least` demands."""
    tile = limits.tile[axis]
    return -(-frame.least[axis] // tile) * tile


def _extent(frame: PiecePlan, limits: Limits, axis: int, count: float) -> int:
    """Return the extent of pieces if there are about `count` of equal size; the least extent for an infinite count."""
    whole, tile = (frame.m, frame.n)[axis], _tile(frame, limits, axis)
    if limits.whole[axis] or count <= 1:
        return max(1, whole)
    return min(max(1, whole), tile * max(1, math.ceil(whole / count / tile)))


def _extents(frame: PiecePlan, limits: Limits, axis: int) -> Iterator[int]:
    """Yield the distinct extents that equal pieces can have along an axis, in rows or columns, the largest first."""
    count, most = 1, _most(frame, limits, axis)
    last = 0
    while count <= most:
        found = _extent(frame, limits, axis, count)
        if found != last:
            yield found
        last = found
        tiles = -(-found // _tile(frame, limits, axis))
        # The next count with an extent that is a tile smaller.
        count = most + 1 if tiles <= 1 else max(count + 1, -(-most // (tiles - 1)))


def _sized(frame: PiecePlan, limits: Limits, rows: int, cols: int) -> PiecePlan:
    plan = replace(frame, rows=max(1, rows), cols=max(1, cols))
    if not plan.count:
        return plan
    # The workspace of a smaller piece may be larger: with few tiles, each part of k has a separate workspace.
    needs = itertools.product(plan.heights, plan.widths)
    return replace(plan, workspace_bytes=max(limits.workspace(*each) for each in needs))


def _kernel_seconds(plan: PiecePlan, limits: Limits) -> float | None:
    """Return the time of all products; `None` if it is unknown. Pieces at the lower and right edge are smaller."""
    if not plan.count:
        return 0.0
    down, across = plan.grid
    total = 0.0
    for row, rows in ((0, down - 1), (down - 1, 1)):
        for col, cols in ((0, across - 1), (across - 1, 1)):
            each = limits.seconds(*plan.computed(row, col)) if rows * cols else 0.0
            if each is None:
                return None
            total += rows * cols * each
    return total


def _predicted(plan: PiecePlan, limits: Limits) -> PiecePlan:
    """Return the plan with its predicted times; unchanged if the time of a product or the rate of copies is unknown."""
    kernel = _kernel_seconds(plan, limits)
    if kernel is None or plan.link_gbs is None:
        return plan
    down, across = plan.grid
    a, b, out = (plan.load_seconds(name) for name in OPERANDS)
    stays, passes, strips, turns = (a, b, down, across) if plan.by_rows else (b, a, across, down)
    steps, added = max(1, plan.count), out * plan.reads_c
    each_piece = kernel / steps
    # A strip in the opposite direction finds the last two panels of the one before it.
    found = 2 * (strips - 1) if turns > 2 else steps - turns
    beside = 0.0 if strips == 1 else stays / max(1, turns - 1)
    usual, short = (max(each_piece, copied + beside + added, out) for copied in (passes, 0.0))
    seconds = stays + passes + added + (steps - 1 - found) * usual + found * short + each_piece + out
    return replace(plan, kernel_seconds=kernel, seconds=seconds)
