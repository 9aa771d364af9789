"""The kernel and configuration for sums along axes on a GPU: a pure function of the problem.

The choice determines the order of a sum, so it does not depend on the device. Sizes are those of a large GPU: 132
multiprocessors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from gemmlab.ops.sums_problem import SumsProblem

BLOCK = 256
"""Threads per block of every kernel for sums along axes."""
LOADS = 8
"""Vectors of 16 bytes that a thread loads at the same time."""
_VECTOR = 4
_WARP = 32
_BUSY_THREADS = 1 << 17
"""Number of threads in a launch below which the multiprocessors have too few loads in flight."""
_FEW_VECTORS = 1 << 16
"""Number of vectors in an array up to which the time is that of starting: half the `LOADS` are shorter code."""
_ROW_WAVE, _COLUMN_WAVE = 528, 396
"""Number of blocks that an H200 runs at the same time, of `sum_rows` (4 on each of 132 multiprocessors) and of
`sum_columns` (3). If there are fewer, sums are divided among several blocks, up to this number in all.
"""
_MULTIPROCESSORS = 132
_FEWEST_TURNS = 4
"""Number of turns below which dividing a sum costs more than it saves. In a turn, each thread of a block loads `LOADS`
vectors.
"""
_STAGED_LOADS = 8, 16
"""Elements that a thread of `sum_staged` loads: the former if a block then has a result for every eighth thread."""
_MOST_STAGED_TERMS = 64
"""Most terms of a sum that one thread of `sum_staged` adds; with more, a block has results for too few threads."""
_FEWEST_STAGED_TERMS = 17
"""Fewest terms of a row for `sum_staged`: a few threads read shorter rows as fast."""
_LINE_LANES = 8
"""Number of lanes that together read a cache line of 128 bytes, 16 bytes each."""


COMPILED: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "sum_rows": ({"LOADS": LOADS}, {"LOADS": LOADS // 2}),
    "sum_staged": tuple({"LOADS": loads} for loads in _STAGED_LOADS),
    "sum_short_rows": ({},),
    "sum_columns": ({},),
}
"""The values of parameters by which the machine code of the rule's choices differs; other parameters are values of the
launch.
"""


class KernelChoice(NamedTuple):
    """The name of a kernel, and values of its parameters; parameters that are left out have their defaults."""

    kernel: str
    config: Mapping[str, int]


def choice_for_axes(problem: SumsProblem) -> KernelChoice:
    """Return the kernel and configuration for sums whose axes are in the order that `axis_plans` gives them."""
    one_run = len(problem.terms) == 1 and (problem.across or problem.length == 0)
    return _staged(problem) or (_rows(problem) if one_run else _columns(problem))


def _staged(problem: SumsProblem) -> KernelChoice | None:
    """Return `sum_staged` and how many groups a block takes; `None` if another kernel is the better one.

    A group is the elements of adjacent results, which lie without gaps. Where vectors of 16 bytes begin at each row,
    the other kernels read them.
    """
    if len(problem.terms) != 1 or not 2 <= problem.length <= _MOST_STAGED_TERMS:
        return None
    ((length, beside),) = problem.terms
    size = length * beside
    if beside == 1:
        lies = len(problem.free) == 1 and problem.free[0][1] == size and length >= _FEWEST_STAGED_TERMS
        on_vectors = length % _VECTOR == 0
    else:
        lies = len(problem.free) == 2 and problem.free[0][:2] == (beside, 1) and problem.free[1][1] == size
        on_vectors = beside % _VECTOR == 0
    if not lies or on_vectors:
        return None
    for loads in _STAGED_LOADS:
        groups = BLOCK * loads // max(1, beside * (length + 1 - length % 2))
        blocks = -(-problem.results // max(1, beside * groups))
        if 8 * groups * beside >= BLOCK and blocks >= _MULTIPROCESSORS:
            return KernelChoice("sum_staged", {"LOADS": loads, "GROUPS": groups})
    return None


def _rows(problem: SumsProblem) -> KernelChoice:
    """Return the kernel for sums of evenly spaced terms, in which adjacent elements are terms of one sum."""
    ((length, step),) = problem.terms
    loads = -(-length // _VECTOR) if step == 1 else length
    # A thread reads a vector, or eight elements one by one.
    team = power_above(-(-length // (_VECTOR if length % _VECTOR == 0 else 2 * _VECTOR)))
    if team <= _WARP and problem.results * team >= 2 * _BUSY_THREADS:
        return KernelChoice("sum_short_rows", {"TEAM": team})
    few = problem.results * loads <= _FEW_VECTORS
    under_way = LOADS // 2 if few else LOADS
    team = min(BLOCK, max(_LINE_LANES, power_above(loads // under_way)))
    while not few and problem.results * team < _MULTIPROCESSORS * BLOCK and team < min(BLOCK, loads):
        team *= 2
    turns = -(-loads // (BLOCK * LOADS))
    split = _parts(turns, problem.results, _ROW_WAVE)
    if split > 1:
        return KernelChoice("sum_rows", {"TEAM": BLOCK, "SPLIT": split})
    return KernelChoice("sum_rows", {"LOADS": under_way, "TEAM": team, "SPLIT": 1})


def _columns(problem: SumsProblem) -> KernelChoice:
    """Return the kernel for columns of terms: adjacent columns belong to adjacent sums or, if `across`, to one sum."""
    terms = [extent for extent, _ in problem.terms] or [1]
    cols = terms[0] if problem.across else next((extent for extent, *_ in problem.free), 1)
    rows = math.prod(terms[1:]) if problem.across else math.prod(terms)
    others = problem.results if problem.across else problem.results // max(1, cols)
    lanes = min(_WARP, power_above(-(-cols // _VECTOR)))
    # Narrow rows are read a line at a time, by several strips.
    fewest = min(max(1, _LINE_LANES // lanes), power_above(-(-rows // 2)))
    strips = min(BLOCK // lanes, max(fewest, power_above(-(-rows // LOADS))))
    while lanes * strips < BLOCK and _VECTOR * lanes < cols:
        lanes *= 2
    tiles = -(-cols // (_VECTOR * lanes))
    # One turn of all multiprocessors reads this array: narrower tiles make more blocks, with fewer rows each.
    small = problem.results * problem.length < _COLUMN_WAVE * BLOCK * LOADS * _VECTOR
    while small and lanes > _LINE_LANES and rows > strips * LOADS and lanes * strips == BLOCK:
        lanes, strips = lanes // 2, strips * 2
        tiles = -(-cols // (_VECTOR * lanes))
    if not (problem.across and tiles > 1):
        while tiles * others * lanes * strips < _BUSY_THREADS and lanes * strips < BLOCK and strips < rows:
            strips *= 2
    # Wider tiles, rather than a few blocks in a second wave.
    if (
        _COLUMN_WAVE < tiles * others <= 2 * _COLUMN_WAVE
        and lanes * strips == BLOCK
        and strips > 1
        and rows <= strips * LOADS
    ):
        lanes, strips = 2 * lanes, strips // 2
        tiles = -(-cols // (_VECTOR * lanes))
    turns = -(-rows // (strips * LOADS))
    split = _parts(turns, tiles * others, _COLUMN_WAVE)
    team = BLOCK if split > 1 or (problem.across and tiles > 1) else lanes * strips
    return KernelChoice("sum_columns", {"TEAM": team, "LANES": lanes, "SPLIT": split})


def _parts(turns: int, blocks: int, wave: int) -> int:
    """Return the number of parts of each sum of `turns` turns, so that all blocks of all parts fit into `wave`.

    `blocks` is the number of blocks without parts. The result is 1 if dividing would cost more than it saves.
    """
    if turns < _FEWEST_TURNS or blocks >= wave:
        return 1
    return -(-turns // -(-turns * blocks // wave))


def power_above(number: int) -> int:
    """Return the least power of two that is at least `number`."""
    return 1 << max(0, number - 1).bit_length()
