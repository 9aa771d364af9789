"""Functions that all blocks use: Markdown tables, and words on where a record was made."""

from __future__ import annotations

from collections.abc import Collection

from gemmlab.core.records import Record
from gemmlab.core.stats import Ratio


def markdown_table(heading: list[str], rows: list[list[str]], texts: Collection[str] = ()) -> str:
    """Return a table in Markdown. The first column, and those whose headings are in `texts`, are aligned as text, all
    others as numbers.
    """
    rule = ["---" if index == 0 or name in texts else "---:" for index, name in enumerate(heading)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heading, rule, *rows))


def provenance(record: Record) -> str:
    """Return the machine, date and version of gemmlab that a record was made with, in words."""
    seen = record.environment
    return f"{machine(record)}, {str(seen.get('time_utc', ''))[:10]}, gemmlab {seen.get('gemmlab', '?')}"


def machine(record: Record) -> str:
    """Return the GPU and its driver, or the processor and its number of cores, in words."""
    if record.device.get("id", "cpu") != "cpu":
        facts = record.device.get("facts", {})
        driver = f", driver {facts['driver']}" if "driver" in facts else ""
        return f"{record.device.get('name')}{driver}"
    seen = record.environment
    return f"{seen.get('cpu', 'an unknown processor')}, {seen.get('cpus', '?')} cores"


def interval(ratio: Ratio | None) -> str:
    return "" if ratio is None else f"{ratio.value:.3f} ({ratio.low:.3f}-{ratio.high:.3f})"


def plain(contestant: str) -> str:
    """Return a peer's name without `:best`, which says that the fastest of its core types was chosen."""
    return contestant.removesuffix(":best")
