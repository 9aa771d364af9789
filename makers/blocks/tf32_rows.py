"""Block on TF32 products whose rows lie off 16 bytes: times of the library call beside the next aligned size."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocks.markdown import machine, markdown_table
from blocks.records import if_recorded, medians
from gemmlab.core.records import Record

RECORD = "h200/tf32-rows.json"
OURS, PEERS = "gemmlab:tf32", ("torch:tf32", "cublas:tf32")


def rows_off_16_bytes(record: Record) -> str:
    """Return a table with one row for each size: microseconds of gemmlab and of its peers, and for an extent that is
    odd the time divided by that of the extent one larger.
    """
    times = medians(record)
    rows = []
    for label, found in times.items():
        extent = int(label.partition("x")[0])
        larger = times.get("x".join([str(extent + 1)] * 3), {}).get(OURS)
        ratio = f"{found[OURS] / larger:.3f}" if extent % 2 and larger else ""
        best = min(found[peer] for peer in PEERS) / found[OURS]
        peers = (f"{found[peer]:,.1f}" for peer in PEERS)
        rows.append([f"{extent}³", f"{found[OURS]:,.1f}", *peers, f"{best:.2f}", ratio])
    heads = ["size", *(f"`{name}`" for name in (OURS, *PEERS)), "x the faster peer", "time / that of one larger"]
    table = markdown_table(heads, rows, ())
    return (
        f"{table}\n\nMedian microseconds, cold caches; {machine(record)}, "
        f"{str(record.environment.get('time_utc', ''))[:10]}."
    )


BLOCKS: Mapping[str, Callable[[], str]] = {"tf32-rows": if_recorded(RECORD, rows_off_16_bytes)}
