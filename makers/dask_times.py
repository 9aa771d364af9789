"""Time products of Dask arrays beside Dask's own `@` on one cluster, and record the workers' peak memory.

    python makers/dask_times.py FILE [--rounds 7] [--seconds 600] [--clusters 2x1,1x2]

For each cluster, workers x threads, the workers make the operands of each product and keep them. Then gemmlab's product
and Dask's take turns; a time ends when every block of the result is in the workers' memory. One result of each is
compared with float64 in sampled rows. In clusters of several workers, a last product has operands and a result that
together exceed 60 % of the workers' limit, so that Dask spills blocks; its record has the highest resident memory of a
worker beside the limit. The record is written after each product. No product begins after the stated seconds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np

import gemmlab.dask
from gemmlab.core.environment import describe_environment
from gemmlab.core.files import replace_file
from gemmlab.core.hardware import cpu_info

SCHEMA = "gemmlab.dask/1"
MIB = 1 << 20
SAMPLED_ROWS = 16


@dataclass(frozen=True, slots=True)
class Product:
    """A product of Dask arrays in square chunks; `limit_mib` bounds the memory of each worker."""

    m: int
    n: int
    k: int
    chunk: int
    limit_mib: int = 6144


PRODUCTS = (
    Product(4096, 4096, 4096, 1024), Product(4096, 4096, 4096, 2048), Product(8192, 8192, 8192, 2048),
    Product(1024, 1024, 32768, 1024), Product(16384, 512, 4096, 1024), Product(5000, 3000, 7000, 1000),
)  # fmt: skip
SPILLED = Product(12288, 12288, 12288, 1536, 1024)
"""A product with 1.7 GiB of operands and result for two workers of 1 GiB each; Dask spills blocks beyond
60 % of that.
"""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--clusters", default="2x1,1x2", help="workers x threads of each")
    options = parser.parse_args()
    info = cpu_info()
    record: dict[str, Any] = {
        "schema": SCHEMA, "environment": describe_environment(),
        "device": {"name": info.name, "slug": info.slug, "cores": info.physical_cores}, "dask": dask.__version__,
        "numpy": np.__version__, "rounds": options.rounds, "results": [],
    }  # fmt: skip
    end = time.monotonic() + options.seconds
    for shape in options.clusters.split(","):
        workers, threads = map(int, shape.split("x"))
        for product in (*PRODUCTS, *((SPILLED,) if workers > 1 else ())):
            if time.monotonic() > end:
                return
            spills = product == SPILLED
            found: dict[str, Any] = {}
            # A process has only one peak of memory. Where it is recorded, each way gets new workers.
            for ways in [(way,) for way in WAYS] if spills else [tuple(WAYS)]:
                with cluster(workers, threads, product.limit_mib) as client:
                    found |= measured(client, product, 2 if spills else options.rounds, ways)
            record["results"].append({
                "workers": workers, "threads": threads, **asdict(product), "spills": spills, "ways": found,
            })  # fmt: skip
            replace_file(options.file, (json.dumps(record, indent=1) + "\n").encode())
            print(json.dumps(record["results"][-1]), flush=True)


def own(a: da.Array, b: da.Array) -> da.Array:
    """Return Dask's product."""
    return a @ b


WAYS: dict[str, Callable[[da.Array, da.Array], da.Array]] = {"gemmlab": gemmlab.dask.gemm, "dask": own}


@contextmanager
def cluster(workers: int, threads: int, limit_mib: int) -> Iterator[distributed.Client]:
    """Start a cluster of worker processes, each with `threads` threads and a limit of memory; end it with the block."""
    with (
        tempfile.TemporaryDirectory() as spilled,
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=threads, memory_limit=limit_mib * MIB, dashboard_address=None,
            local_directory=spilled, silence_logs="ERROR",
        ) as started,
        distributed.Client(started) as client,
    ):  # fmt: skip
        yield client


def measured(
    client: distributed.Client, product: Product, rounds: int, ways: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """Return each way's times in seconds, its largest error (`error`), and the peak memory of any worker in MiB."""
    rng = da.random.default_rng(7)
    m, n, k, chunk = product.m, product.n, product.k, product.chunk
    a, b = client.persist([
        rng.standard_normal((m, k), chunks=chunk, dtype=np.float32),
        rng.standard_normal((k, n), chunks=chunk, dtype=np.float32),
    ])  # fmt: skip
    distributed.wait([a, b])
    kept = client.run_on_scheduler(known_tasks)
    times: dict[str, list[float]] = {way: [] for way in ways}
    errors: dict[str, float] = {}
    # The first turn starts the workers' threads and compiles. It is not timed; its results are compared.
    for turn in range(rounds + 1):
        for way in ways if turn % 2 else ways[::-1]:
            start = time.perf_counter()
            c = client.persist(WAYS[way](a, b))
            distributed.wait(c)
            took = time.perf_counter() - start
            if turn:
                times[way].append(took)
            else:
                errors[way] = error(a, b, c)
            del c
            # A product of the same name is not computed again as long as the scheduler knows the last one.
            while client.run_on_scheduler(known_tasks) > kept:
                time.sleep(0.01)
    peak = max(client.run(peak_bytes).values())
    return {
        way: {"seconds": times[way], "error": errors[way], "peak_mib": round(peak / MIB)} for way in ways
    }  # fmt: skip


def known_tasks(dask_scheduler: Any) -> int:
    """Return the number of tasks that a scheduler knows."""
    return len(dask_scheduler.tasks)


def error(a: da.Array, b: da.Array, c: da.Array) -> float:
    """Return the largest error of c in sampled rows, in units of 2^-24 |A| |B|."""
    rows = np.linspace(0, a.shape[0] - 1, SAMPLED_ROWS).astype(int)
    chosen, got = (x[rows].astype(np.float64).persist() for x in (a, c))
    exact, scale = chosen @ b.astype(np.float64), abs(chosen) @ abs(b.astype(np.float64))
    return float((abs(got - exact) / scale).max().compute()) * 2.0**24


def peak_bytes() -> int:
    """Return the most memory that this process has had resident. Linux only."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
