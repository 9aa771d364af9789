"""Block of products with a packed right operand: `gemmlab bench --packed`, on each processor with a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocks.markdown import interval, markdown_table, provenance
from blocks.records import by_processor
from gemmlab.core.records import Record
from gemmlab.results.summary import FASTEST, Row, summarise
from gemmlab.timing.peers import PACKED


def packs() -> str:
    """Return a table for each processor with a record: times of the plain call and of that with a packed operand."""
    return "\n\n".join(_table(*each) for each in by_processor("packs.json"))


def _table(folder: str, record: Record) -> str:
    rows = {(row.label, row.threads, row.contestant): row for row in summarise(record).rows}
    products = sorted(dict.fromkeys((threads, label) for label, threads, _ in rows), key=lambda each: each[0])
    lines = [
        [label, str(threads), *_cells(rows[label, threads, "gemmlab"], rows[label, threads, PACKED])]
        for threads, label in products
    ]
    heading = ["m x n x k", "threads", "plain, us", "packed, us", "plain / packed", "packed x fastest peer (95 %)"]
    note = f"Medians, warm caches. Measured on {provenance(record)} (`benchmarks/results/{folder}`)."
    return f"{markdown_table(heading, lines, ())}\n\n{note}"


def _cells(plain: Row, packed: Row) -> tuple[str, ...]:
    times = (f"{row.median_us:,.0f}" for row in (plain, packed))
    return (*times, f"{plain.median_us / packed.median_us:.2f}", interval(packed.ratios.get(FASTEST)))


BLOCKS: Mapping[str, Callable[[], str]] = {"packs": packs}
