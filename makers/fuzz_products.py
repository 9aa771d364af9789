"""Check a number of random products: `python makers/fuzz_products.py --products 1000000`.

The calls are the trials of `tests/fuzz/test_products.py`, one after another from one seed, on one core. If all are
right, their number is written to `benchmarks/results/fuzz.json`. A wrong one ends the run with exit code 1 and without
a record; the printed command repeats it.
"""

from __future__ import annotations

import argparse
import json
import platform
import secrets
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from blocks.fuzzed import SCHEMA

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "fuzz")]

from products import Ranges, check_products  # noqa: E402 - of the tests, which are no package

from gemmlab import __version__  # noqa: E402
from gemmlab.core.hardware import cpu_info  # noqa: E402
from support.trials import Trials  # noqa: E402

TEST = "test_products"
_EVERY = 10.0


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--products", type=int, default=1_000_000, help="how many products of matrices to check")
    options.add_argument("--seed", type=int, default=secrets.randbelow(2**32), help="seed of the trials")
    options.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "fuzz.json")
    chosen = options.parse_args()
    ranges, trials = Ranges(), Trials(chosen.seed, TEST, float("inf"))
    products = refused = 0
    start, spoken = time.process_time(), time.monotonic()
    for rng in trials:
        try:
            count = check_products(rng, ranges)
        except Exception as error:  # noqa: BLE001 - whatever it was, how to repeat it is said
            print(
                f"wrong after {products} products: {error}\npytest tests/fuzz/test_products.py::{TEST} {trials.rerun}"
            )
            return 1
        products, refused = products + count, refused + (count == 0)
        if time.monotonic() - spoken > _EVERY:
            spoken = time.monotonic()
            print(f"{products:,} products in {trials.number + 1:,} calls", flush=True)
        if products >= chosen.products:
            break
    record = {
        "schema": SCHEMA, "call": "gemmlab.gemm", "seed": chosen.seed, "calls": trials.number + 1, "products": products,
        "wrong": 0, "calls_without_products": refused, "ranges": vars(ranges),
        "cpu_seconds": round(time.process_time() - start), "version": __version__,
        "taken": f"{datetime.now(UTC):%Y-%m-%d}", "cpu": cpu_info().name,
        "python": platform.python_version(), "numpy": np.__version__,
    }  # fmt: skip
    chosen.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{products:,} products in {trials.number + 1:,} calls, none wrong: {chosen.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
