"""Regions of C: a product whose workspace would be too large is computed one region after another.

C, 16384 x 16384       Kernels that store converted operands need room for the rows of A and the columns of B of a
+--------+--------+    region. With regions, a slice of k (`slices.py`) can stay long, and C is read and written
|   0    |   1    |    once for each slice. In return, the rows of A are converted once for each region across, and
+--------+--------+    the columns of B once for each region down.
|   2    |   3    |
+--------+--------+    A region begins at a multiple of the tile, so no sum is added in another order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem

MOST_BYTES = 512 << 20
"""The most bytes of workspace for a kernel with slices of k; a product that needs more is computed in regions."""
_TILE = 128
_MOST_DOWN = 1024
"""The most regions down C that are considered."""


@dataclass(frozen=True, slots=True)
class Regions:
    """The extents of the regions of an `m` x `n` result. The last ones, down and across, may be smaller."""

    m: int
    n: int
    rows: int
    columns: int

    @property
    def down(self) -> int:
        """Number of regions one below the other."""
        return -(-self.m // max(1, self.rows))

    @property
    def across(self) -> int:
        """Number of regions side by side."""
        return -(-self.n // max(1, self.columns))

    @property
    def count(self) -> int:
        """Number of regions."""
        return self.down * self.across

    def starts(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (first row, first column, rows, columns) of each region, a row of regions after the other."""
        for row, column in product(range(0, self.m, self.rows), range(0, self.n, self.columns)):
            yield row, column, min(self.rows, self.m - row), min(self.columns, self.n - column)

    def __str__(self) -> str:
        return f"{self.count} regions of C, each of at most {self.rows:,} x {self.columns:,}"


def regions_of(kernel: Kernel, config: Mapping[str, int], problem: GemmProblem) -> Regions | None:
    """Return the regions that keep a kernel's workspace within `MOST_BYTES` and convert the fewest elements; one region
    if the whole product needs no more. `None` if no division does.
    """
    m, n = problem.m, problem.n
    # Compile-time parameters do not depend on the extents of a region.
    instance = kernel.instantiate(config, GemmOp().scalars(problem))

    def fits(rows: int, columns: int) -> bool:
        part = GemmProblem(rows, columns, problem.k, trans_a=problem.trans_a, trans_b=problem.trans_b)
        return kernel.workspace_bytes(part, instance) <= MOST_BYTES

    if fits(m, n):
        return Regions(m, n, m, n)
    tile = math.lcm(_TILE, *(config[name] for name in ("BM", "BN") if name in config))
    most, tiles_down, tiles_across = _most_lines(fits, tile), -(-m // tile), -(-n // tile)
    ways = list[tuple[int, int, int, int]]()
    for down in range(1, min(tiles_down, _MOST_DOWN) + 1):
        rows = -(-tiles_down // down)
        if rows < most:
            across = -(-tiles_across // (most - rows))
            ways.append((across * m + down * n, down * across, rows, -(-tiles_across // across)))
    if not ways:
        return None
    *_, rows, columns = min(ways)
    return Regions(m, n, min(m, rows * tile), min(n, columns * tile))


def workspace_of(kernel: Kernel, config: Mapping[str, int], problem: GemmProblem) -> int:
    """Return the bytes of workspace that a kernel needs for a product computed at once."""
    scalars: Mapping[str, Any] = GemmOp().scalars(problem)
    return kernel.workspace_bytes(problem, kernel.instantiate(config, scalars))


def _most_lines(fits: Callable[[int, int], bool], tile: int) -> int:
    """Return the most rows and columns together, in tiles, of a region that `fits`; 1 if none does. The whole product
    does not fit.
    """
    low, high = 1, 2
    while fits(tile * (high - 1), tile):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(tile * (middle - 1), tile) else (low, middle)
    return low
