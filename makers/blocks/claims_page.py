"""The block of docs/claims.md: every claim of the sources, with the verdict that follows from the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from blocks.markdown import markdown_table
from claims import (
    cuda_matmul_worklog,
    gpu_gemm_worklog,
    gpu_reduction,
    sgemm_compilation,
    sgemm_profiling_notes,
    sgemm_versions,
)
from claims.claim import Finding, Source, Verdict, finding

SOURCES: Sequence[Source] = tuple(
    part.SOURCE
    for part in (
        gpu_gemm_worklog,
        sgemm_profiling_notes,
        sgemm_versions,
        cuda_matmul_worklog,
        sgemm_compilation,
        gpu_reduction,
    )
)


def claims_block() -> str:
    """Return the number of claims with each verdict, then one table for each source."""
    found = {source.name: [finding(claim) for claim in source.claims] for source in SOURCES}
    counts = Counter(item.verdict for items in found.values() for item in items)
    parts = [", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict) + "."]
    for source in SOURCES:
        lines = [
            [claim.said, claim.tested, f"**{item.verdict}**", _figure(item)]
            for claim, item in zip(source.claims, found[source.name], strict=True)
        ]
        table = markdown_table(["claim", "test", "verdict", "figure"], lines, ["test", "verdict", "figure"])
        parts += [f"## {source.name}", source.about, table]
    return "\n\n".join(parts)


def _figure(item: Finding) -> str:
    where = ", ".join(f"[{name}](../benchmarks/results/{name})" for name in item.records)
    return f"{item.figure} ({where})" if where else item.figure


BLOCKS: Mapping[str, Callable[[], str]] = {"claims": claims_block}
