"""Time `precision="float32"` with a few rows or columns that halves do not hold, beside the clean product.

    python makers/float32_lines.py benchmarks/results/h200/float32-lines.json [--sizes 1024,2048,4096] [--rounds 15]

All products of a size are timed in turn, in a new order each round, each after a write over the level-2 cache. Needs
torch; the exit code is 3 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gemmlab
from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import GemmlabError
from gemmlab.core.files import replace_file
from gemmlab.devices.select import open_device

SCHEMA = "gemmlab.float32-lines/1"
_OVER_CACHE = 1 << 28
"""Bytes that are written between two products: more than the level-2 cache holds."""
_WIDE = 2.0**-60


def _nan_in_a(a: Any, _b: Any) -> None:
    a[len(a) // 3, 5] = float("nan")


def _infinity_in_b(_a: Any, b: Any) -> None:
    b[5, b.shape[1] // 3] = float("inf")


def _wide_row_of_a(a: Any, _b: Any) -> None:
    a[len(a) // 3, ::2] *= _WIDE


def _wide_column_of_b(_a: Any, b: Any) -> None:
    b[::2, b.shape[1] // 3] *= _WIDE


def _largest_in_a(a: Any, _b: Any) -> None:
    a[len(a) // 3] *= 2.0**125


def _sixteen_nan(a: Any, _b: Any) -> None:
    a[:: len(a) // 16, 7] = float("nan")


KINDS: Mapping[str, Callable[[Any, Any], None]] = {
    "clean": lambda _a, _b: None, "one NaN in A": _nan_in_a, "one infinity in B": _infinity_in_b,
    "a row of A with elements 2^-60 of others": _wide_row_of_a,
    "a column of B with elements 2^-60 of others": _wide_column_of_b,
    "a row of A near the largest float32": _largest_in_a, "a NaN in each of 16 rows of A": _sixteen_nan,
}  # fmt: skip


def times(torch: Any, size: int, rounds: int) -> dict[str, list[float]]:
    """Return the microseconds of the product of two normal `size` x `size` matrices by kind of data, sorted."""
    flush = torch.empty(_OVER_CACHE, dtype=torch.uint8, device="cuda")
    out = torch.empty((size, size), device="cuda")
    made = {}
    for name, change in KINDS.items():
        a, b = (torch.randn((size, size), device="cuda") for _ in "ab")
        change(a, b)
        made[name] = a, b
    found: dict[str, list[float]] = {name: [] for name in KINDS}
    for number in range(rounds + 1):
        for name in random.sample(list(KINDS), len(KINDS)):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.fill_(number)
            first.record()
            gemmlab.gemm(*made[name], out=out, precision="float32")
            last.record()
            torch.cuda.synchronize()
            # The first round compiles and warms up.
            if number:
                found[name].append(1e3 * float(first.elapsed_time(last)))
    return {name: sorted(values) for name, values in found.items()}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--sizes", default="1024,2048,4096")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args(arguments)
    try:
        device = open_device("cuda")
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    import torch

    results = {size: times(torch, size, given.rounds) for size in map(int, given.sizes.split(","))}
    record = {
        "schema": SCHEMA, "environment": describe_environment(), "device": device.describe().name,
        "rounds": given.rounds, "times_us": results,
    }  # fmt: skip
    replace_file(given.file, (json.dumps(record, indent=1) + "\n").encode())
    for size, found in results.items():
        clean = statistics.median(found["clean"])
        for name, values in found.items():
            us = statistics.median(values)
            print(f"{size} {name}: {us:.1f} us, {clean / us:.3f} of clean")
    return 0


if __name__ == "__main__":
    sys.exit(main())
