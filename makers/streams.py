"""Time many small products on one stream and on several, for a claim of the sources about what fills a GPU better.

    python makers/streams.py [--size 512] [--products 32] [--streams 8] [--out benchmarks/results/h200/streams.json]

`maxas_64`, whose small tiles give a small product more blocks, and `maxas_256` each multiply the same matrices on one
stream, and on several streams in turn. A large product keeps the GPU busy until all calls are queued, so that the
host's time is not part of the figures. It takes a few seconds, and needs torch and a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gemmlab
from blocks.records import RESULTS
from claims.small_runs import STREAMS
from gemmlab.core.errors import GemmlabError

ROUNDS = 15
BUSY = 8192
"""Extent of the product that keeps the GPU busy, some twenty milliseconds."""


def ways(torch: Any, size: int, products: int, streams: int) -> dict[str, Callable[[], None]]:
    """Return by name the functions to time. Each starts all products, and makes later work on the current stream wait
    for them. Raises `SystemExit` if one gives wrong results.
    """
    a, b = (torch.rand((products, size, size), device="cuda") - 0.5 for _ in "ab")
    side = [torch.cuda.Stream() for _ in range(streams)]

    def way(kernel: str, used: int) -> Callable[[], None]:
        out = torch.empty((products, size, size), device="cuda")

        def all_products() -> None:
            main = torch.cuda.current_stream()
            for stream in side[:used]:
                stream.wait_stream(main)
            for index in range(products):
                with torch.cuda.stream(side[index % used]):
                    gemmlab.gemm(a[index], b[index], out=out[index], kernel=kernel)
            for stream in side[:used]:
                main.wait_stream(stream)

        all_products()
        torch.cuda.synchronize()
        if not bool((out.double() - a.double() @ b.double()).abs().max() <= 1e-3):
            raise SystemExit(f"{kernel} on {used} streams: wrong results")
        return all_products

    return {
        "maxas_64, one stream": way("maxas_64", 1), "maxas_256, one stream": way("maxas_256", 1),
        "maxas_64, several streams": way("maxas_64", streams), "maxas_256, several streams": way("maxas_256", streams),
    }  # fmt: skip


def timed(torch: Any, call: Callable[[], None], busy: Any) -> float:
    """Return the microseconds from the end of the large product `busy` x `busy` to the end of all
    products of a call.
    """
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.mm(busy, busy)
    first.record()
    call()
    waited = first.query()
    last.record()
    torch.cuda.synchronize()
    if waited:
        raise SystemExit("the GPU was idle before all calls were made; a larger product must keep it busy (BUSY)")
    return 1e3 * float(first.elapsed_time(last))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--products", type=int, default=32)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--out", type=Path, default=RESULTS / STREAMS[0])
    chosen = parser.parse_args(arguments)
    try:
        import torch
    except ImportError:
        print("torch is not installed", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("torch sees no GPU", file=sys.stderr)
        return 3
    try:
        calls = ways(torch, chosen.size, chosen.products, chosen.streams)
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    samples: dict[str, list[float]] = {name: [] for name in calls}
    busy = torch.rand((BUSY, BUSY), device="cuda")
    for _ in range(ROUNDS):
        for name, call in calls.items():
            samples[name].append(timed(torch, call, busy))
    rows = {name: {"time_us": statistics.median(times)} for name, times in samples.items()}
    for name, row in rows.items():
        print(name, row)
    record = {
        "schema": STREAMS[1], "device": torch.cuda.get_device_name(), "size": chosen.size,
        "products": chosen.products, "streams": chosen.streams, "rows": rows,
    }  # fmt: skip
    chosen.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
