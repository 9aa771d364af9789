"""Measured times of GPU kernels, by which `gemmlab.gemm` chooses its kernel: a small table that gemmlab ships.

`makers/choices.py` makes `measured.json` from the records in `benchmarks/results`. A tuner may later replace it by a
table of the user's own GPU: `Table` lists the fields that are needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from gemmlab.core.errors import RecordError
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.dispatch.forest import Forest, read_forest
from gemmlab.kernels.catalog import current_id
from gemmlab.ops.gemm_problem import GemmProblem

FILE = Path(__file__).parent / "measured.json"
CORRECTION = Path(__file__).parent / "correction.npz"
SCHEMA = "gemmlab.choices/2"


class Figures(NamedTuple):
    """The fitted figures of one kernel and configuration, for the rule in `waves.py`. Times are in microseconds."""

    start_us: float
    """The time of a launch besides its blocks."""
    alone_us: float
    """The time of a step along k of a block that is alone on its multiprocessor."""
    share_us: float
    """The time that each block adds to a step on a full multiprocessor."""
    meet_us: float = 0.0
    """The time of each level of the tree that adds the parts of sums."""
    ends: float = 0.0
    """The time of a block's beginning and of storing its results, in steps."""
    words: float = 0.0
    """The fraction by which a step takes longer where operands are read by single words (`waves.reads_by_words`)."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One kernel in one configuration: the resources of a block, and the measured times.

    The figures are fitted to the products that were measured; `waves.estimate` explains them.
    """

    kernel: str
    precision: str
    layouts: tuple[str, ...]
    arch: str
    """The architecture that the kernel needs, as in `core.architecture`: `"sm_80"` or a newer one, `"sm_90a"` alone."""
    config: Mapping[str, int]
    threads: int
    """Threads of a block."""
    registers: int
    """Registers of a thread."""
    smem: int
    """Bytes of shared memory of a block, static and dynamic."""
    grid: tuple[str, ...]
    """Number of blocks along each axis of the grid, as expressions of the kernel's file; only blocks that take `steps`
    steps count.
    """
    figures: Figures
    """The figures fitted to the times of all products."""
    steps: str = "K"
    """Number of steps along k that a block takes, as an expression of the kernel's file."""
    below: str = ""
    """The lowest architecture on which newer kernels replace this one; empty if none do."""
    domain: str = ""
    """A condition on the products that the figures hold for, over `M`, `N`, `K` and the configuration; empty for any.
    """
    parts: tuple[int, ...] = ()
    """Numbers of parts that k may be split into; empty for a kernel whose blocks do not share k."""
    in_order: bool = True
    """True if each result is one chain of multiply-adds in the order of k. If k can be split, this holds for a single
    part.
    """
    align: int = FLOAT_BYTES
    """The alignment, in bytes, that the kernel requires of its operands."""
    require: tuple[str, ...] = ()
    """Conditions on the products that the kernel takes, over extents, layout and leading dimensions; empty for any."""
    times_us: Mapping[str, float] = field(default_factory=dict)
    """`time_key` -> median time with cold caches, in microseconds."""


@dataclass(frozen=True)
class Table:
    """All measurements of one GPU model."""

    gpu: str
    """A name that `core.gpu.model` knows."""
    taken: str
    """The date of the measurement, as ISO 8601 writes it."""
    memory_gbs: float
    """The rate at which kernels read and write cold matrices, in 10^9 bytes a second."""
    parts_gbs: float
    """The rate at which blocks exchange parts of sums through the level-2 cache, in 10^9 bytes a second."""
    entries: tuple[Measurement, ...]
    correction: Forest | None = None
    """Trees that correct estimates of kernels in float32 (`correction.py`); `None` for none. It is no part of JSON."""

    @cached_property
    def products(self) -> frozenset[str]:
        """The `time_key` of all products that were measured, with k in any number of parts."""
        return frozenset(key.partition("/")[0] for entry in self.entries for key in entry.times_us)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, `schema` first. An entry's `align` and `require` are left out if they are the
        defaults.
        """
        needless = {"align": FLOAT_BYTES, "require": ()}
        entries = [
            {name: value for name, value in asdict(entry).items() if name not in needless or value != needless[name]}
            for entry in self.entries
        ]
        rest = {name: getattr(self, name) for name in ("gpu", "taken", "memory_gbs", "parts_gbs")}
        return {"schema": SCHEMA, **rest, "entries": entries}


def time_key(problem: GemmProblem, parts: int = 1, products: int = 1) -> str:
    """Return the key of a product in `times_us`: its extents, layout and leading dimensions as text.

    Before it stands `P*` for P products in one launch, behind it `/P` for k in P parts. Alpha and beta do not matter.
    """
    plain = replace(problem, alpha=1.0, beta=0.0, contents="uniform")
    return in_parts((f"{products}*" if products > 1 else "") + plain.label, parts)


def in_parts(key: str, parts: int) -> str:
    """Return the key of a product with k in `parts` parts; `key` is that of one part."""
    return f"{key}/{parts}" if parts > 1 else key


def table_from_json(data: Mapping[str, Any]) -> Table:
    """Return the table that `Table.to_json` wrote as `data`. Raises `RecordError` for other data."""
    try:
        if data["schema"] != SCHEMA:
            raise RecordError(f"no table of choices: schema {data['schema']!r}")
        entries = tuple(_measured(entry) for entry in data["entries"])
        rates = float(data["memory_gbs"]), float(data["parts_gbs"])
        return Table(str(data["gpu"]), str(data["taken"]), *rates, entries)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"no table of choices: {error}") from error


def _measured(entry: Mapping[str, Any]) -> Measurement:
    kernel = current_id(entry["kernel"], notice=False)
    lists = {name: tuple(entry.get(name, ())) for name in ("layouts", "grid", "parts", "require")}
    return Measurement(**{**entry, **lists, "figures": Figures(*entry["figures"]), "kernel": kernel})


@cache
def shipped_table(file: Path = FILE) -> Table:
    """Return a table of measured times that gemmlab ships, read once.

    By default it is the one of single products, which has a correction.
    """
    table = table_from_json(json.loads(file.read_text(encoding="utf-8")))
    return replace(table, correction=read_forest(CORRECTION)) if file == FILE else table
