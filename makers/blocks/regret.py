"""The block on the regret of the library's choice: the time of the chosen kernel divided by that of the fastest
candidate, at random products.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import RESULTS
from gemmlab.core.words import assignments

RECORD = "h200/regret.json"
SCHEMA = "gemmlab.regret/1"
WORST = 5
"""The number of products that are listed."""


def regret(record: Mapping[str, Any]) -> str:
    """Return the median and the worst regret, a table of the products with the largest, and how they were measured.

    Raises `ValueError` for a record of another schema.
    """
    if record.get("schema") != SCHEMA:
        raise ValueError(f"{RECORD}: schema {record.get('schema')!r}, not {SCHEMA}")
    shapes = sorted(record["shapes"], key=lambda shape: -shape["regret"])
    if not shapes:
        return "*Not measured yet.*"
    best = sum(shape["chosen"]["kernel"] == shape["best"]["kernel"] for shape in shapes)
    said = (
        f"Over {len(shapes)} random products: median **{record['median']:.3f}**, worst **{record['worst']:.3f}**. The "
        f"chosen kernel is that of the best time in {best} of them. The largest:"
    )
    rows = [
        [f"`{shape['size']}`", f"{shape['regret']:.3f}", *_cells(shape["chosen"]), *_cells(shape["best"])]
        for shape in shapes[:WORST]
    ]  # fmt: skip
    table = markdown_table(["m x n x k", "regret", "chosen", "us", "best", "us "], rows, ("chosen", "best"))
    when = str(record["environment"].get("time_utc", ""))[:10]
    return (
        f"{said}\n\n{table}\n\nSeed {record['seed']}, {record['device']}, {when}, cold caches; the best "
        f"{record['timed_again']} of a first pass over all candidates were timed again, in turns."
    )


def _cells(side: Mapping[str, Any]) -> list[str]:
    config = assignments(side["config"])
    return [f"`{side['kernel']}` {config}", f"{side['us']:.1f}"]


def _block() -> str:
    path = RESULTS / RECORD
    return regret(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else "*Not measured yet.*"


BLOCKS: Mapping[str, Callable[[], str]] = {"regret": _block}
