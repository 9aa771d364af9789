"""Make the table that `gemmlab.gemm` chooses GPU kernels by, from the records of this folder: `python choices.py`.

For every kernel and configuration that was timed the three figures of `dispatch/waves.py` are fitted to its sizes. What
the rule would choose for no shape of a wide grid, on none of several GPUs, is left out. With `--check` nothing is
written, and the exit code is 1 when the table is not that of the records.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gemmlab.core.precision import PRECISIONS
from gemmlab.core.program import Config
from gemmlab.core.records import Record
from gemmlab.dispatch.measurements import FILE, Measurement, Table
from gemmlab.dispatch.waves import estimate, gpu_model
from gemmlab.kernels.aliases import read_record
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.kernel import NO_MEMORY
from gemmlab.ops.gemm import GemmOp

HERE = Path(__file__).parents[1] / "benchmarks" / "results" / "h200"
RECORDS = ("gemm.json", "tf32.json", "configs.json", "configs-swizzle.json", "climb-cuda.json")
MEASURED_ON = "H200"
CHOSEN_ON = ("H200", "A100", "L4", "L40S", "T4")
"""A choice for one of them is a reason to be in the table."""
EXTENTS = (1, 32, 64, 128, 200, 300, 512, 700, 1024, 1500, 2048, 3000, 4096, 6000, 8192, 16384)
DEPTHS = (32, 512, 8192)
LEFT_OUT = ("naive_strided",)
"""Its lanes walk down M: what squares say of it says nothing of the narrow shapes that the rule would choose it for.
Textures are left out too: a library call makes none."""
START_US = (4.0, 15.0)
"""What a launch and the ends of a block may take: figures of few sizes would say anything."""
TYPICAL_START_US = 6.0
"""Where one size was measured, and no more than one figure can be fitted."""


def table() -> Table:
    """The table of the records."""
    records = [read_record(HERE / name, notice=False) for name in RECORDS]
    entries = [_fitted(entry) for entry in _measured(records)]
    kept = _chosen_somewhere(entries)
    return Table(MEASURED_ON, str(records[0].environment["time_utc"])[:10], tuple(kept))


def _measured(records: list[Record]) -> Iterator[Measurement]:
    """Every kernel and configuration with its medians, without figures yet."""
    times: dict[tuple[str, str], dict[str, list[float]]] = {}
    facts: dict[tuple[str, str], Mapping[str, Any]] = {}
    for result in itertools.chain.from_iterable(record.results for record in records):
        if result.facts.get("role") != "rung" or not result.samples or result.verified is not True:
            continue
        key = result.contestant.removeprefix("kernel:").partition("[")[0], json.dumps(result.facts["config"])
        medians = times.setdefault(key, {}).setdefault(result.label, [])
        medians.append(statistics.median(sample.time_us for sample in result.samples))
        facts[key] = result.facts
    for (name, config), sizes in times.items():
        kernel = find_kernel(name)
        chosen = kernel.configure(json.loads(config))  # with defaults for parameters that the record is too old for
        if name in LEFT_OUT or chosen.get("TEXTURE"):
            continue
        resources = facts[name, config]["resources"]
        smem, threads = _launched(name, chosen)
        yield Measurement(
            kernel=name, precision=kernel.precision, layouts=kernel.layouts, arch=kernel.arch, config=chosen,
            threads=threads, registers=resources["registers"], smem=resources["static_smem_bytes"] + smem,
            grid=kernel.grid, in_order=kernel.in_order,
            start_us=TYPICAL_START_US, alone_us=0.0, share_us=0.0,
            times_us={label: round(statistics.fmean(values), 2) for label, values in sizes.items()},
        )  # fmt: skip


def _launched(name: str, config: Config) -> tuple[int, int]:
    """Dynamic shared memory and threads of a block."""
    kernel, op = find_kernel(name), GemmOp()
    (problem,) = op.parse_sizes("64")
    scalars = op.scalars(problem)
    nothing = dict.fromkeys(("a", "b", "c", "texture(a)", "texture(b)", *NO_MEMORY), scalars["m"])
    (launch,) = kernel.launches(kernel.instantiate(config, scalars), {**scalars, **nothing})
    return launch.smem_bytes, math.prod(launch.threads)


def _fitted(entry: Measurement) -> Measurement:
    """The figures with the least mean error of the logarithm, by search along each; the same every time."""
    where = gpu_model(MEASURED_ON)
    sizes = {_extents(label): us for label, us in entry.times_us.items()}
    largest = max(sizes)
    held = estimate(replace(entry, share_us=1.0), *largest, where, where)
    share = (sizes[largest] - TYPICAL_START_US) / largest[2] / math.ceil(held.blocks / where.sms)
    if len(sizes) == 1:
        return replace(entry, alone_us=round(held.resident * share, 5), share_us=round(share, 5))

    def error(figures: tuple[float, float, float]) -> float:
        tried = replace(entry, start_us=figures[0], alone_us=figures[1], share_us=figures[2])
        found = (math.log(estimate(tried, *size, where, where).us / us) for size, us in sizes.items())
        return math.fsum(abs(each) for each in found)

    figures = (TYPICAL_START_US, share * max(1.0, held.resident / 1.5), share)
    least, step = error(figures), 0.3
    while step > 1e-3:
        start, alone, share = figures
        tried = [
            near
            for by in (1 + step, 1 / (1 + step))
            for near in ((start * by, alone, share), (start, alone * by, share), (start, alone, share * by))
        ]
        best = min((figures for figures in tried if START_US[0] <= figures[0] <= START_US[1]), key=error)
        if error(best) < least:
            figures, least = best, error(best)
        else:
            step /= 2
    start, alone, share = figures
    # Where every size had blocks enough, many values of `alone` fit alike to a percent: the slowest of them is taken.
    slowest, bearable = held.resident * share, least + 0.01 * len(sizes)
    while alone < slowest and error((start, min(1.05 * alone, slowest), share)) <= bearable:
        alone = min(1.05 * alone, slowest)
    return replace(entry, start_us=round(start, 2), alone_us=round(alone, 5), share_us=round(share, 5))


def _extents(label: str) -> tuple[int, int, int]:
    m, n, k = map(int, label.split("x"))
    return m, n, k


def _chosen_somewhere(entries: list[Measurement]) -> list[Measurement]:
    base, chosen = gpu_model(MEASURED_ON), set[int]()
    for name, layout, precision in itertools.product(CHOSEN_ON, ("nn", "tn"), PRECISIONS):
        where = gpu_model(name)
        able = [
            (index, entry)
            for index, entry in enumerate(entries)
            if layout in entry.layouts
            and int(entry.arch.removeprefix("sm_")) <= where.arch
            and PRECISIONS.index(entry.precision) <= PRECISIONS.index(precision)
        ]
        for m, n, k in itertools.product(EXTENTS, EXTENTS, DEPTHS):
            chosen.add(min(able, key=lambda one: estimate(one[1], m, n, k, where, base).us)[0])
    for label in {label for entry in entries for label in entry.times_us}:
        timed = [index for index, entry in enumerate(entries) if label in entry.times_us]
        chosen.add(min(timed, key=lambda index: entries[index].times_us[label]))
    return [entry for index, entry in enumerate(entries) if index in chosen]


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
