"""The block on products of Dask arrays: `gemmlab.dask.gemm` beside Dask's own `@`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import geometric_mean, median
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import if_there

RECORD = "cpu-amd-25-17/dask.json"
SCHEMA = "gemmlab.dask/1"


def times(record: Mapping[str, Any]) -> str:
    """Return a table of times and peak memory of products, and a sentence on how they were measured."""
    rows, ratios = list[list[str]](), list[float]()
    for one in record["results"]:
        ways = one["ways"]
        ours, theirs = (median(ways[name]["seconds"]) for name in ("gemmlab", "dask"))
        ratios.append(theirs / ours)
        peaks = " / ".join(str(ways[name]["peak_mib"]) for name in ("gemmlab", "dask")) if one["spills"] else ""
        rows.append([
            f"{one['m']}x{one['n']}x{one['k']}", str(one["chunk"]), f"{one['workers']} x {one['threads']}",
            f"{ours:.3g}", f"{theirs:.3g}", f"**{theirs / ours:.2f}**", peaks,
            f"{one['limit_mib']}" if one["spills"] else "",
        ])  # fmt: skip
    heading = [
        "m x n x k",
        "chunks",
        "workers x threads",
        "gemmlab, s",
        "Dask's `@`, s",
        "x Dask",
        "peak, MiB",
        "limit, MiB",
    ]
    when = str(record["environment"].get("time_utc", ""))[:10]
    made = (
        f"{record['device']['name']}, {record['device']['cores']} cores, Dask {record['dask']}, NumPy {record['numpy']}"
    )
    return (
        f"{markdown_table(heading, rows)}\n\n{made}, {when}; a `LocalCluster`, medians of {record['rounds']} turns "
        f"(2 where a limit is given), until the result is in the workers' memory; geometric mean "
        f"{geometric_mean(ratios):.2f}, least {min(ratios):.2f}. *Peak* is the most memory that a worker had resident, "
        "with gemmlab and with Dask. In the rows with a limit, operands and result exceed 60 % of it, and Dask spills "
        "blocks."
    )


BLOCKS: Mapping[str, Callable[[], str]] = {"dask-times": if_there(RECORD, SCHEMA, times)}
