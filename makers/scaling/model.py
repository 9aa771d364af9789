"""A model of products on many cores: the work and the fetches of a thread, the memory traffic of all, turns of the
pool.

The constants of one core and of a turn of the pool, in which the threads begin a job and meet again, are measured on
two cores (`scaling/constants.py`). The properties that many cores share, memory and sockets, are assumed, and are
stated with the table. A predicted time is the longer of the busiest thread's time and the memory's time, plus the turns
of the pool.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.thread_division import cheapest, useful
from gemmlab.codegen.thread_grid import SCATTERED, TRANSPOSED, row_multiple

TILE_ROWS, TILE_COLS = 12, 32
K_BLOCK = 768
_CORES_THAT_FILL = 16
"""The number of cores whose reads together need all of a machine's memory rate."""
LAYOUTS = {"rows": 0, "columns": TRANSPOSED, "gaps": SCATTERED}
"""Layout of B -> the cost of packing one of its elements that does not overlap with other work, in multiply-adds."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Nanoseconds on one core: for a multiply-add, for fetching an element into its caches, and for a
    turn of the pool.
    """

    multiply_add: float
    a_element: float
    b_element: dict[str, float]
    """Layout -> the cost of an element that the thread itself fetches and packs. In the layout `rows` packing overlaps
    with other work, so that value is also the cost of an element that is packed already: it comes from the same
    distance.
    """
    turn: float
    """A turn of the pool for each thread beside the caller."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Properties of a machine that its cores share."""

    cores: int
    cores_a_socket: int = 64
    socket_gb_s: float = 250.0
    """Memory rate of a socket in 10^9 bytes a second: four fifths of eight channels of DDR5-4800."""
    remote: float = 1.6
    """Time of an access to another socket's memory or cache, relative to the own one's."""

    @property
    def sockets(self) -> int:
        return -(-self.cores // self.cores_a_socket)

    @property
    def distance(self) -> float:
        """Mean cost of fetching an element, relative to one socket: each socket has its share of all operands."""
        return (1 + (self.sockets - 1) * self.remote) / self.sockets


@dataclass(frozen=True, slots=True)
class Product:
    m: int
    n: int
    k: int
    layout: str = "rows"


@dataclass(frozen=True, slots=True)
class Forecast:
    """A division of a product among threads into jobs of `rows` x `cols`, and the parts of its time in nanoseconds: the
    busiest core, memory, turns of the pool. `alone_ns` is the time of all multiply-adds on one core.
    """

    rows: int
    cols: int
    core_ns: float
    memory_ns: float
    turns_ns: float
    alone_ns: float
    together: bool
    """True if the threads pack B together."""

    @property
    def time_ns(self) -> float:
        return max(self.core_ns, self.memory_ns) + self.turns_ns

    def efficiency(self, cores: int) -> float:
        """Return `alone_ns` divided by the time of all cores together: 1 for a perfect division."""
        return self.alone_ns / (cores * self.time_ns)

    @property
    def limit(self) -> str:
        """`memory` if it takes longer than the busiest core, else `turns` if these take more than a fifth of its time,
        else `core`.
        """
        return "memory" if self.memory_ns > self.core_ns else "turns" if self.turns_ns > self.core_ns / 5 else "core"


BEFORE, GRID, NOW = "before", "grid", "now"
"""Designs. `BEFORE`: all threads, rectangles of which the largest is as small as possible. `GRID`: the cheapest
rectangles, for as many threads as pay. `NOW`: the same, with rows in multiples of `row_multiple` instead of whole
tiles, and B is packed by all threads together if that is cheaper.
"""


def divided(product: Product, threads: int, design: str) -> tuple[int, int, bool]:
    """Return the rows and columns of a rectangle that a design chooses, and whether all threads pack B together."""
    m, n, k, element = product.m, product.n, product.k, LAYOUTS[product.layout]
    if design != BEFORE:
        shared, high = (K_BLOCK, row_multiple(TILE_ROWS, threads)) if design == NOW else (None, TILE_ROWS)
        return cheapest((m, n, k), threads, (high, TILE_COLS), element, shared)
    tiles_m, tiles_n = -(-m // TILE_ROWS), -(-n // TILE_COLS)
    found: list[tuple[int, int, int, int]] = []
    for down in range(1, min(threads, tiles_m) + 1):
        rows, cols = -(-tiles_m // down) * TILE_ROWS, -(-tiles_n // (threads // down)) * TILE_COLS
        found.append((rows * cols, down, rows, cols))
    _cost, _down, rows, cols = min(found)
    return rows, cols, False


def forecast(product: Product, machine: Machine, of: Constants, design: str) -> Forecast:
    """Return the predicted division and time of a product on a machine, by the constants `of`."""
    m, n, k = product.m, product.n, product.k
    threads = machine.cores if design == BEFORE else useful(machine.cores, m * n * k)
    rows, cols, together = divided(product, threads, design)
    high, wide = min(rows, m), min(cols, n)
    own = of.b_element[product.layout]
    fetch = high * of.a_element + wide * (of.b_element["rows"] if together else own)
    pack = n / threads * own if together else 0.0
    turns = k // K_BLOCK + 2 if together else 1
    core = k * (high * wide * of.multiply_add + (fetch + pack) * machine.distance)
    moved = 4.0 * (m * k + k * n + 2 * m * n * -(-k // K_BLOCK))
    rate = machine.socket_gb_s * machine.sockets * min(1.0, threads / _CORES_THAT_FILL)
    meeting = threads if together else min(threads, -(-m // rows) * -(-n // cols))
    waits = turns * of.turn * (meeting - 1) * machine.distance
    return Forecast(rows, cols, core, moved / rate, waits, m * n * k * of.multiply_add, together)
