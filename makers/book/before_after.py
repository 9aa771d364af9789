"""A table of a rung's counters beside those of the rung before it, for rungs whose section of the ladder's page has
none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blocks.markdown import markdown_table, provenance
from blocks.records import CPU, load
from gemmlab.core.records import Record
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.cache_record import CacheRow, cache_rows
from gemmlab.results.climb_rows import climb_rows, digits, percent

_COUNTED: Mapping[str, str] = {"reduce": "emulated/reduce.json", "sums": "emulated/sums.json"}
_FACTS: Mapping[str, str] = {
    "instructions": "instructions", "barriers": "barriers", "global load requests": "global_load_requests",
    "global sectors read": "global_load_sectors", "shared load requests": "shared_load_requests",
    "shared load wavefronts": "shared_load_wavefronts", "shared store requests": "shared_store_requests",
}  # fmt: skip
_MISSES: Mapping[str, Callable[[CacheRow], float]] = {
    "L1 misses": lambda row: row.l1_misses, "L2 misses": lambda row: row.l2_misses,
    "TLB misses": lambda row: row.tlb_misses,
}  # fmt: skip


def counters_table(kernel: Kernel) -> str:
    """Return a section with the rung's figures beside those of the rung before; empty if no record has any, and for GPU
    products, whose sections have such a table.
    """
    if (kernel.op, kernel.device) == ("gemm", "cuda"):
        return ""  # the generated block of its section
    rows, note = _of_cpu(kernel) if kernel.device == "cpu" else _of_gpu(kernel)
    if not rows:
        return ""
    compared = [find_kernel(kernel.after).id, kernel.id] if kernel.after else [kernel.id]
    lines = [[heading, *cells] for heading, cells in rows.items() if set(cells) - {"", "0"}]
    table = markdown_table(["", *(f"`{name}`" for name in compared)], lines)
    return f"## Counters before and after\n\n{table}\n\n{note}"


def _of_gpu(kernel: Kernel) -> tuple[dict[str, list[str]], str]:
    record = load(_COUNTED[kernel.op])
    found = {} if record is None else {str(one.facts["name"]): one for one in record.results if "facts" in one.facts}
    if record is None or kernel.id not in found:
        return {}, ""
    both = [found.get(name) for name in ([kernel.after, kernel.id] if kernel.after else [kernel.id])]
    rows = {heading: ["" if one is None else f"{one.facts['facts'][key]:,.0f}" for one in both]
            for heading, key in _FACTS.items()}  # fmt: skip
    return rows, f"Size {found[kernel.id].label}, all launches together, counted on {record.device.get('id')}."


def _of_cpu(kernel: Kernel) -> tuple[dict[str, list[str]], str]:
    climb, cache = (load(f"{CPU}/{name}.json") for name in ("climb", "cache"))
    names = [kernel.after, kernel.id] if kernel.after else [kernel.id]
    rows, notes = dict[str, list[str]](), list[str]()
    if climb is not None and (speeds := _speeds(climb)).get(kernel.id):
        rows["GFLOP/s"] = [speeds.get(str(name), ("", ""))[0] for name in names]
        rows["of the FMA peak"] = [speeds.get(str(name), ("", ""))[1] for name in names]
        notes.append(f"Speeds measured on {provenance(climb)}.")
    if cache is not None:
        misses = {(row.kernel, row.size): row for row in cache_rows(cache)}
        for size in dict.fromkeys(size for name, size in misses if name == kernel.id):
            for heading, value in _MISSES.items():
                there: list[Any] = [misses.get((str(name), size)) for name in names]
                rows[f"{heading}, {size}"] = ["" if one is None else digits(value(one)) for one in there]
        if any(name == kernel.id for name, _size in misses):
            notes.append("Misses for 1000 multiply-adds, in simulated caches.")
    return rows, " ".join(notes)


def _speeds(record: Record) -> dict[str, tuple[str, str]]:
    return {
        row.name: (digits(row.gflops), percent(row.peak_share) if row.peak_share is not None else "")
        for row in climb_rows(record)
        if row.role == "rung"
    }
