"""The block on searches that were replayed on recorded spaces: gemmlab's, random order, and Kernel
Tuner's strategies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import load_json

RECORD = "h200/searches.json"
SCHEMA = "gemmlab.searches/1"
OURS = "gemmlab"
FIT = ("thread_tile_2d", "reduce_peak")
"""The rungs on whose spaces the constants of gemmlab's search were chosen; the others judge it."""


def searches(record: Mapping[str, Any]) -> str:
    """Return a table of the median, the 90th percentile and the worst of each search's answer on each space, by budget;
    the search with the best median, then 90th percentile, of a space and budget is bold.
    """
    rows: Sequence[Mapping[str, Any]] = record["rows"]
    shares = sorted({row["share"] for row in rows})
    heading = ["space", "role", "search", *(f"{share:.0%} of the time" for share in shares)]
    lines = []
    for space in dict.fromkeys(row["space"] for row in rows):
        own = [row for row in rows if row["space"] == space]
        best = {share: min(map(_key, (row for row in own if row["share"] == share))) for share in shares}
        kind = "fit" if space.startswith(FIT) else "judged"
        for search in dict.fromkeys(row["search"] for row in own):
            of = {row["share"]: row for row in own if row["search"] == search}
            cells = [_cell(of[share], best[share]) if share in of else "" for share in shares]
            lines.append([space, kind, search, *cells])
    table = markdown_table(heading, lines, ("role", "search"))
    return (
        f"{table}\n\nMedian, 90th percentile and worst over {record['seeds']} seeds of the answer's time divided by "
        "the best time. The search with the best median, then 90th percentile, of a space and budget is bold. "
        "Constants of the search were chosen on the spaces with the role *fit*, and on none of the *judged* ones."
    )


def _key(row: Mapping[str, Any]) -> tuple[float, float]:
    return tuple(float("inf") if row[name] is None else round(row[name], 3) for name in ("median", "p90"))  # type: ignore[return-value]


def _cell(row: Mapping[str, Any], best: tuple[float, float]) -> str:
    if row["median"] is None:
        return "no answer"
    text = ", ".join("none" if row[name] is None else f"{row[name]:.3f}" for name in ("median", "p90", "worst"))
    return f"**{text}**" if _key(row) == best else text


def _block() -> str:
    record = load_json(RECORD, SCHEMA)
    return "*Not measured yet.*" if record is None else searches(record)


BLOCKS: Mapping[str, Callable[[], str]] = {"searches": _block}
