"""A model of products on many cores: what a thread computes and fetches, what all of them read, how they meet.

The constants of one core and of one meeting are measured on two cores (`scaling/constants.py`); what a machine with
many has in common, memory and sockets, is assumed and stated with the table. A time is the longer of what the busiest
thread takes and what memory takes, and the turns of the pool.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.thread_division import cheapest, useful
from gemmlab.codegen.thread_grid import SCATTERED, TRANSPOSED

TILE_ROWS, TILE_COLS = 12, 32
K_BLOCK = 768
_CORES_THAT_FILL = 16
"""Cores whose reads together take all of a machine's memory rate."""
LAYOUTS = {"rows": 0, "columns": TRANSPOSED, "gaps": SCATTERED}
"""Layouts of B, and the multiply-adds for packing an element of it that nothing hides."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Nanoseconds on one core: for a multiply-add, for bringing an element into its caches, and for a meeting."""

    multiply_add: float
    a_element: float
    b_element: dict[str, float]
    """By layout, packed by the thread itself. What it costs in rows, where packing hides, an element of a strip that is
    packed already costs, too: it comes from the same distance."""
    turn: float
    """A turn of the pool for each thread beside the caller."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Properties of a machine that its cores share."""

    cores: int
    cores_a_socket: int = 64
    socket_gb_s: float = 250.0
    """Memory of a socket: eight channels of DDR5-4800, of which four fifths are reached."""
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
    """A division of a product among threads, and the time that it takes, in nanoseconds."""

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
        """Time of one core's multiply-adds alone, divided by that of all cores."""
        return self.alone_ns / (cores * self.time_ns)

    @property
    def limit(self) -> str:
        """The cause that takes most time beyond a perfect division: memory, turns or a core."""
        return "memory" if self.memory_ns > self.core_ns else "turns" if self.turns_ns > self.core_ns / 5 else "core"


BEFORE, GRID, NOW = "before", "grid", "now"
"""Designs: rectangles whose largest is smallest; the cheapest ones, for as many threads as pay; and B packed by all
together where that is cheaper.
"""


def divided(product: Product, threads: int, design: str) -> tuple[int, int, bool]:
    """Return rows and columns of a rectangle, and whether packing is shared, as a design chooses them."""
    m, n, k, element = product.m, product.n, product.k, LAYOUTS[product.layout]
    if design != BEFORE:
        return cheapest((m, n, k), threads, (TILE_ROWS, TILE_COLS), element, K_BLOCK if design == NOW else None)
    tiles_m, tiles_n = -(-m // TILE_ROWS), -(-n // TILE_COLS)
    found: list[tuple[int, int, int, int]] = []
    for down in range(1, min(threads, tiles_m) + 1):
        rows, cols = -(-tiles_m // down) * TILE_ROWS, -(-tiles_n // (threads // down)) * TILE_COLS
        found.append((rows * cols, down, rows, cols))
    _cost, _down, rows, cols = min(found)
    return rows, cols, False


def forecast(product: Product, machine: Machine, of: Constants, design: str) -> Forecast:
    """Return the time of a product on all cores."""
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
