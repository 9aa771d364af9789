"""The block on the sources' own test of a product, largest error / |value| / K below 1e-6, with right and wrong
results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from blocks.markdown import markdown_table
from blocks.records import load_json
from gemmlab.results.climb_rows import short_size
from gemmlab.verify.elementwise import SOURCE_LIMIT

RECORD, SCHEMA = "emulated/source-test.json", "gemmlab.source-test/1"


@dataclass(frozen=True, slots=True)
class Tested:
    """One way to compute, at one size, on one kind of data."""

    n: int
    data: str
    """The interval of the elements of A and B, in words."""
    way: str
    error: float
    """Largest error / |value| / K, the figure of the test."""
    failing: float
    """Share of the elements that are over its limit."""

    @property
    def passes(self) -> bool:
        return self.error < SOURCE_LIMIT


@cache
def tested() -> Sequence[Tested]:
    """Return the rows of the record; none if there is no record."""
    record = load_json(RECORD, SCHEMA)
    return () if record is None else [Tested(**row) for row in record["rows"]]


def source_test_block() -> str:
    """Return a table with one line for each way to compute and kind of data, and one column for each size."""
    sizes = sorted({row.n for row in tested()})
    lines = []
    for data, way in dict.fromkeys((row.data, row.way) for row in tested()):
        mine = {row.n: row for row in tested() if (row.data, row.way) == (data, way)}
        lines.append([way, data, *(_cell(mine[n]) if n in mine else "" for n in sizes)])
    heading = ["computed", "A and B", *(short_size(f"{n}x{n}x{n}") for n in sizes)]
    note = (
        f"Largest error / value / K in units of {SOURCE_LIMIT:.0e}, so the test asks for less than 1; in brackets the "
        "share of elements over it."
    )
    return "\n\n".join([markdown_table(heading, lines, ["A and B"]), note])


def _cell(row: Tested) -> str:
    units = row.error / SOURCE_LIMIT
    said = f"{units:.3f}" if units < 10 else f"{units:,.0f}"
    return said if row.passes else f"**{said}** ({row.failing:.2%})"


BLOCKS: Mapping[str, Callable[[], str]] = {"tensor-source-test": source_test_block}
