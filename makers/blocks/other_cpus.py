"""Block of the library call on processors other than the one whose records the pages show."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocks.markdown import interval, markdown_table, plain, provenance
from blocks.records import CPU, by_processor
from gemmlab.core.records import Record
from gemmlab.results.summary import FASTEST, Row, summarise


def other_processors() -> str:
    """Return a table for each other processor with a record: at each size, the ratio of `gemmlab.gemm`'s speed to the
    fastest peer's.
    """
    return "\n\n".join(_table(folder, record) for folder, record in by_processor("gemm.json") if folder != CPU)


def _table(folder: str, record: Record) -> str:
    summary = summarise(record)
    rows = {(row.label, row.threads): row for row in summary.rows if row.role == "library call"}
    counts = sorted({threads for _, threads in rows})
    lines = []
    for label in dict.fromkeys(label for label, _ in rows):
        cells = [_cells(rows.get((label, threads))) for threads in counts]
        lines.append([label, *(cell for pair in cells for cell in pair)])
    heading = ["m x n x k", *(cell for n in counts for cell in (f"x fastest, threads {n} (95 %)", "fastest"))]
    means = {mean.threads: mean for mean in summary.means if mean.peer == FASTEST and mean.contestant == "gemmlab"}
    said = ", ".join(f"{interval(means[n].ratio)} with threads {n}" for n in counts if n in means)
    note = f"Geometric mean: {said}. Measured on {provenance(record)} (`benchmarks/results/{folder}`)."
    return f"{markdown_table(heading, lines, ['fastest'])}\n\n{note}"


def _cells(row: Row | None) -> tuple[str, str]:
    return ("", "") if row is None else (interval(row.ratios.get(FASTEST)), plain(row.fastest or ""))


BLOCKS: Mapping[str, Callable[[], str]] = {"library-other-processors": other_processors}
