"""Make the table that `gemmlab.gemm` chooses GPU kernels by, from the records of a GPU: `python choices.py`.

The kernels of float32 are those of the sweep (`makers/sweep_kernels.py`), those of lower precisions come from records
of `gemmlab bench`. For every kernel and configuration the figures of `dispatch/waves.py` are fitted to its times. What
the rule would choose for no shape of a wide grid, on none of several GPUs, is left out. With `--check` nothing is
written, and the exit code is 1 when the table is not that of the records.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from choices_fit import MEMORY_GBS, PARTS_GBS, fitted
from choices_times import benched, least, stated, swept
from gemmlab.core.precision import FLOAT32, PRECISIONS
from gemmlab.dispatch.measurements import FILE, Measurement, Table
from gemmlab.dispatch.waves import Gpu, estimate, gpu_model
from gemmlab.ops.gemm_problem import GemmProblem

HERE = Path(__file__).parents[1] / "benchmarks" / "results" / "h200"
SWEEP = HERE / "sweep.jsonl.gz"
LOWER = ("tf32.json",)
MEASURED_ON = "H200"
CHOSEN_ON = ("H200", "A100", "L4", "L40S", "T4")
"""A choice for one of them is a reason to be in the table."""
EXTENTS = (
    1,
    2,
    4,
    8,
    16,
    24,
    32,
    48,
    64,
    100,
    128,
    200,
    300,
    512,
    700,
    1024,
    1500,
    2048,
    3000,
    4096,
    6000,
    8192,
    16384,
)
DEPTHS = (32, 128, 512, 2048, 8192, 65536)


def table() -> Table:
    """The table of the records."""
    taken, times = swept(SWEEP)
    lower = [entry for name in LOWER for entry in benched(HERE / name) if entry.base.precision != FLOAT32]
    every = [*times, *lower]
    best = least(every)
    empty = Table(MEASURED_ON, taken, MEMORY_GBS, PARTS_GBS, ())
    entries = tuple(replace(fitted(one, empty, best), times_us=stated(one, best)) for one in every)
    return replace(empty, entries=tuple(_chosen_somewhere(replace(empty, entries=entries))))


def _chosen_somewhere(found: Table) -> Iterator[Measurement]:
    chosen = set[int]()
    for name, layout, precision in itertools.product(CHOSEN_ON, ("nn", "nt", "tn"), PRECISIONS):
        where = gpu_model(name)
        able = [
            (index, entry)
            for index, entry in enumerate(found.entries)
            if layout in entry.layouts
            and int(entry.arch.removeprefix("sm_")) <= where.arch
            and PRECISIONS.index(entry.precision) <= PRECISIONS.index(precision)
        ]
        for in_order in (False, True):
            among = [(index, entry) for index, entry in able if entry.in_order or not in_order]
            for m, n, k in itertools.product(EXTENTS, EXTENTS, DEPTHS):
                problem = GemmProblem(m, n, k).with_layout(layout)
                chosen.add(min(among, key=lambda one: _least(one[1], problem, where, found, in_order))[0])
    for precision in PRECISIONS:
        fastest: dict[str, tuple[float, int]] = {}
        for index, entry in enumerate(found.entries):
            for key, us in entry.times_us.items() if entry.precision == precision else ():
                label = key.partition("/")[0]
                fastest[label] = min((us, index), fastest.get(label, (us, index)))
        chosen |= {index for _, index in fastest.values()}
    return (entry for index, entry in enumerate(found.entries) if index in chosen)


def _least(entry: Measurement, problem: GemmProblem, where: Gpu, found: Table, in_order: bool) -> float:
    parts = (1,) if in_order or not entry.parts else entry.parts
    return min(estimate(entry, problem, where, found, parts=count).us for count in parts)


def main() -> int:
    """Write the table, or say whether it is up to date."""
    text = json.dumps(table().to_json(), separators=(",", ":")).replace('{"kernel"', '\n{"kernel"') + "\n"
    if "--check" in sys.argv[1:]:
        return int(text != FILE.read_text(encoding="utf-8"))
    FILE.write_text(text, encoding="utf-8")
    print(f"{FILE}: {text.count('kernel')} entries, {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
