"""Signs in a climb's record that something else ran beside it."""

from __future__ import annotations

from gemmlab.core.records import Record
from gemmlab.results.climb_rows import ClimbRow, climb_rows, digits, peaks, short_size

LEAST_SCALING = 0.85
"""The FMA peak of n threads to n times that of one. Below it cores were shared, or slowed down together."""
MOST_SPREAD = 0.15
"""Middle half of a row's times to their median."""


def disturbances(record: Record) -> list[str]:
    """A sentence for each thread count whose peak falls short, and one that names the rows whose times spread."""
    rows = climb_rows(record)
    said = [_short_of_peak(count, rows, peaks(record)) for count in sorted({row.threads for row in rows})]
    spread = [f"{_named(row)} {row.spread:.0%}" for row in rows if row.spread > MOST_SPREAD]
    if spread:
        said.append(f"times spread by more than {MOST_SPREAD:.0%} (middle half to median): {', '.join(spread)}")
    return [text for text in said if text]


def _short_of_peak(threads: int, rows: list[ClimbRow], measured: dict[int, float]) -> str:
    one, many = measured.get(1), measured.get(threads)
    if one is None or many is None or many >= LEAST_SCALING * threads * one:
        return ""
    concerned = ", ".join(row.name for row in rows if row.threads == threads)
    return (
        f"the FMA peak on {threads} threads, {digits(many)} GFLOP/s, is {many / threads / one:.2f} of {threads} times "
        f"that on one ({digits(one)}): the cores did other work, are threads of one core, or clock lower together; "
        f"this concerns {concerned}"
    )


def _named(row: ClimbRow) -> str:
    return f"{row.name} {short_size(row.size)} on {row.threads} thread{'s' * (row.threads > 1)}"
