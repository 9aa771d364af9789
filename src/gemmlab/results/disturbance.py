"""Signs of disturbance in a climb's record: other work on the machine during the measurement."""

from __future__ import annotations

from gemmlab.core.records import Record
from gemmlab.results.climb_rows import ClimbRow, climb_rows, digits, peaks, short_size

LEAST_SCALING = 0.85
"""If the peak on n threads is less than this fraction of n times the peak on one thread, the measurement was disturbed:
the cores were shared or had lower clocks.
"""
MOST_SPREAD = 0.15
"""If the interquartile range of a row's times is more than this fraction of their median, they were disturbed."""


def disturbances(record: Record) -> list[str]:
    """Return a sentence for each thread count whose peak falls short, and one about the rows with a large spread."""
    rows = climb_rows(record)
    texts = [_short_of_peak(count, rows, peaks(record)) for count in sorted({row.threads for row in rows})]
    spread = [f"{_named(row)} {row.spread:.0%}" for row in rows if row.spread > MOST_SPREAD]
    if spread:
        texts.append(f"times spread by more than {MOST_SPREAD:.0%} (middle half to median): {', '.join(spread)}")
    return [text for text in texts if text]


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
