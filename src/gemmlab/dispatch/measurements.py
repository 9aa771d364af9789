"""Measured times of GPU kernels, by which a library call chooses: a small table in the package.

`makers/choices.py` makes `measured.json` from the records in `benchmarks/results`. A tuner may later replace it by a
table of the user's own GPU: `Table` lists the fields it needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gemmlab.core.errors import RecordError
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.kernels.catalog import current_id
from gemmlab.ops.gemm_problem import GemmProblem

FILE = Path(__file__).parent / "measured.json"
SCHEMA = "gemmlab.choices/2"


class Figures(NamedTuple):
    """The fitted figures of one kernel and configuration, for the rule in `waves.py`. Times are in microseconds."""

    start_us: float
    """The time of a launch besides its blocks."""
    alone_us: float
    """The time of a step along k of a block alone on a multiprocessor."""
    share_us: float
    """The time that each block adds to a step on a full multiprocessor."""
    meet_us: float = 0.0
    """The time of each level of the tree in which parts of sums are added."""
    ends: float = 0.0
    """The time of a block besides its steps, in steps: its beginning, and the store of its results."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One kernel in one configuration: the resources of a block, and the measured times.

    The figures are fitted to the products that were measured; `waves.estimate` says what they mean.
    """

    kernel: str
    precision: str
    layouts: tuple[str, ...]
    arch: str
    """The lowest architecture that it runs on."""
    config: Mapping[str, int]
    threads: int
    registers: int
    smem: int
    """Bytes of shared memory of a block, static and dynamic."""
    grid: tuple[str, ...]
    """The launch's blocks that take `steps` steps, as the kernel's file states them."""
    figures: Figures
    """The figures fitted to the times of all products."""
    steps: str = "K"
    """The number of steps along k that a block takes, as the kernel's file states it."""
    below: str = ""
    """The architecture from which on newer kernels are considered instead; empty for a kernel that is not older."""
    domain: str = ""
    """The products that it was measured for, an expression over `M`, `N`, `K` and the configuration; empty for any."""
    parts: tuple[int, ...] = ()
    """Numbers of parts that k may be split into; empty for a kernel whose blocks do not share k."""
    in_order: bool = True
    """True if each result is one chain of multiply-adds in the order of k (with a single part, where k may be split).
    """
    align: int = FLOAT_BYTES
    """Bytes that its operands must begin on."""
    require: tuple[str, ...] = ()
    """The products that it takes, expressions over extents, layout and leading dimensions; empty for any."""
    times_us: Mapping[str, float] = field(default_factory=dict)
    """Medians by `time_key`, caches cold."""


@dataclass(frozen=True, slots=True)
class Table:
    """Everything measured on one GPU model."""

    gpu: str
    """A name that `core.gpu.model` knows."""
    taken: str
    """The date of the measurement."""
    memory_gbs: float
    """The rate at which cold matrices pass through memory, 10^9 bytes a second."""
    parts_gbs: float
    """The rate at which blocks exchange parts of sums through the level-2 cache."""
    entries: tuple[Measurement, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON values, `schema` first. An entry without needs of its own does not state them."""
        needless = {"align": FLOAT_BYTES, "require": ()}
        entries = [
            {name: value for name, value in asdict(entry).items() if name not in needless or value != needless[name]}
            for entry in self.entries
        ]
        return {"schema": SCHEMA, **asdict(replace(self, entries=())), "entries": entries}


def time_key(problem: GemmProblem, parts: int = 1, products: int = 1) -> str:
    """Return the name of a product in `times_us`: extents, layout and leading dimensions; `P*` before it for P products
    in one launch, `/P` behind it for k in P parts.
    """
    plain = replace(problem, alpha=1.0, beta=0.0, contents="uniform")
    return (f"{products}*" if products > 1 else "") + plain.label + (f"/{parts}" if parts > 1 else "")


def table_from_json(data: Mapping[str, Any]) -> Table:
    """Return the table that `Table.to_json` wrote as `data`; `RecordError` for anything else."""
    try:
        if data["schema"] != SCHEMA:
            raise RecordError(f"no table of choices: schema {data['schema']!r}")
        entries = tuple(_measured(entry) for entry in data["entries"])
        rates = float(data["memory_gbs"]), float(data["parts_gbs"])
        return Table(str(data["gpu"]), str(data["taken"]), *rates, entries)
    except (KeyError, TypeError) as error:
        raise RecordError(f"no table of choices: {error}") from error


def _measured(entry: Mapping[str, Any]) -> Measurement:
    kernel = current_id(entry["kernel"], notice=False)
    lists = {name: tuple(entry.get(name, ())) for name in ("layouts", "grid", "parts", "require")}
    return Measurement(**{**entry, **lists, "figures": Figures(*entry["figures"]), "kernel": kernel})


@cache
def shipped_table(file: Path = FILE) -> Table:
    """A table of the package: by default that of single products."""
    return table_from_json(json.loads(file.read_text(encoding="utf-8")))
