"""Record the cache misses of a ladder, and compute the rows of the table from a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gemmlab.core.environment import describe_environment
from gemmlab.core.records import Record, Result
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.cache_misses import CacheCounts, Counts, simulate
from gemmlab.observe.packing_time import PackingTime, time_packing
from gemmlab.ops.op import Op, Problem
from gemmlab.probes.cachesim import COUNTERS, Caches

NOTES = (
    "simulated: set-associative, least recently used, write-back, nothing prefetched, caches empty at the start",
    "operands start on 2 MiB boundaries; loads and stores as the kernel's source makes them, one thread",
    "packing_time is measured on this machine, warm, and does not include packing by tiles while they multiply",
)

Progress = Callable[[str, int, int], None]
"""A function that is called with (kernel and size of the next run as text, runs done, all runs)."""


def run_cache(kernels: Sequence[Kernel], op: Op, problems: Sequence[Any], caches: Caches, progress: Progress) -> Record:
    """Simulate every kernel on every problem, and time the packing of those that pack; return the record."""
    results: list[Result] = []
    for problem in problems:
        for kernel in kernels:
            progress(f"{kernel.id} {problem.label}", len(results), len(kernels) * len(problems))
            results.append(_result(kernel, op, problem, caches))
    return Record(
        kind="cache", op=op.name, environment=describe_environment(), device={"id": "cpu", "caches": asdict(caches)},
        method=None, results=tuple(results), notes=NOTES,
    )  # fmt: skip


def _result(kernel: Kernel, op: Op, problem: Problem, caches: Caches) -> Result:
    counts = simulate(kernel, op, problem, caches)
    time = time_packing(kernel, op, problem) if counts.packing else None
    facts: dict[str, Any] = {"total": asdict(counts.total)}
    if counts.packing is not None:
        facts |= {"packing": asdict(counts.packing), "packing_time": asdict(time) if time else None}
    return Result(kernel.id, problem.to_json(), problem.label, op.flops(problem), threads=1, facts=facts)


@dataclass(frozen=True, slots=True)
class CacheRow:
    """Figures of one kernel on one problem. Misses per 1000 multiply-adds, traffic in bytes per multiply-add."""

    kernel: str
    size: str
    accessed_bytes: float
    """Bytes loaded and stored per multiply-add."""
    l1_misses: float
    l2_misses: float
    tlb_misses: float
    from_l2: float
    """Traffic between L1 and L2, both ways."""
    from_memory: float
    """Traffic between L2 and memory, both ways."""
    packing_bytes: float | None
    """Fraction of the bytes loaded and stored that is due to packing; `None`, as the next two, for a kernel without a
    workspace.
    """
    packing_l2_misses: float | None
    """Fraction of the misses of L2 that is due to packing."""
    packing_time: float | None
    """Fraction of the measured time spent in packing functions; also `None` if the kernel calls no such function."""


def cache_rows(record: Record) -> list[CacheRow]:
    """Return the rows of a record of kind `cache`."""
    return [_row(result.contestant, result.label, result.flops // 2, result.facts) for result in record.results]


def _row(kernel: str, size: str, multiply_adds: int, facts: Mapping[str, Any]) -> CacheRow:
    total = _counts(facts["total"])
    counts = CacheCounts(multiply_adds, total, _counts(facts["packing"]) if "packing" in facts else None)
    packed, time = counts.packing, facts.get("packing_time")
    return CacheRow(
        kernel, size,
        accessed_bytes=counts.per_thousand(total.bytes) / 1e3,
        l1_misses=counts.per_thousand(total.l1_misses),
        l2_misses=counts.per_thousand(total.l2_misses),
        tlb_misses=counts.per_thousand(total.tlb_misses),
        from_l2=counts.per_thousand(total.l2_bytes) / 1e3,
        from_memory=counts.per_thousand(total.memory_bytes) / 1e3,
        packing_bytes=None if packed is None else packed.bytes / max(1, total.bytes),
        packing_l2_misses=None if packed is None else packed.l2_misses / max(1, total.l2_misses),
        packing_time=PackingTime(**time).share if time else None,
    )  # fmt: skip


def _counts(data: Mapping[str, int]) -> Counts:
    return Counts(*(data[name] for name in COUNTERS))
