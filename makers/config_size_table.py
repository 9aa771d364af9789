"""Time the 11 kernels and configurations of a Korean worklog's table at its 31 sizes.

    python makers/config_size_table.py benchmarks/results/h200/size-table.json

Squares from 256 to 4096 in steps of 128, cold caches, cuBLAS beside them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gemmlab.core.errors import GemmlabError
from gemmlab.core.records import save_record
from gemmlab.devices.select import open_device
from gemmlab.kernels.by_name import named_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.timing.bench import run_bench
from gemmlab.timing.bench_plan import Plan
from gemmlab.timing.configurations import config_tables, configured
from gemmlab.timing.families import family_of
from gemmlab.timing.peers import kernel_spec, parse_peers
from gemmlab.timing.prebuild import of_plan, prebuild

SIZES = "256:4096:128"
CONTESTANTS: tuple[tuple[str, Mapping[str, int]], ...] = (
    ("naive_strided", {}), ("naive", {}), ("block_tile", {"BM": 32, "BN": 32, "BK": 32}),
    ("thread_tile_1d", {"BM": 64, "BN": 64, "TM": 8}),
    ("thread_tile_2d", {"BM": 64, "BN": 64, "BK": 8}), ("thread_tile_2d", {"BM": 128, "BN": 128, "BK": 8}),
    ("vector_load", {"BM": 64, "BN": 64, "BK": 8}), ("vector_load", {"BM": 128, "BN": 128, "BK": 8}),
    ("warp_tile", {"BM": 64, "BN": 64, "BK": 8, "WM": 64, "WN": 32}),
    ("warp_tile", {"BM": 128, "BN": 128, "BK": 8, "WM": 64, "WN": 32}),
    ("warp_tile", {"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 64}),
)  # fmt: skip
"""Kernels with the tile sizes of that table; other parameters are the rungs' defaults."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    try:
        where = open_device(options.device, "cold")
        plan = plan_of(options.device, options.sizes, options.rounds)
        prebuild(of_plan(plan), where)
        info = where.describe()
        record = run_bench(plan, device={"id": info.id, "name": info.name, "facts": dict(info.facts)})
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    save_record(record, options.out)
    for table in config_tables(record):
        print(table.kernel, *table.sizes)
        for config, times in table.rows.items():
            print(" ", config, *("" if time is None else f"{time:.3f}" for time in times))
    return 0


def plan_of(device: str, sizes: str, rounds: int) -> Plan:
    """Return the plan of the bench. Raises `UsageError` for a configuration that is not legal."""
    where, op = open_device(device, "cold").device_name, find_op("gemm")
    specs = []
    for name, values in CONTESTANTS:
        named = named_kernel(name)
        specs.append(configured(kernel_spec(named, where, "cold"), named.kernel.configure(values)))
    return Plan(
        op=op, problems=op.parse_sizes(sizes), contestants=[*specs, *parse_peers("cublas", where, "cold")],
        rounds=rounds, processes=1, timing=family_of("cuda").timing["cold"], device=where, mode="cold",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
