"""Blocks on machine code that a GPU ran: orders of main loops, blind changes, and code by two compilers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import RESULTS, load
from gemmlab.core.records import Record

ORDERS, MUTATIONS, LATENCIES = "h200/sass-variants.json", "h200/sass-mutations.json", "h200/sass-latencies.json"
AGAIN = "h200/sass-mutations-again.json"
COMPILERS = ("h200/archive-13.5.json", "h200/archive-13.0.json", "h200/compiled-13.0.json")
"""The ladder by the archive's code beside the compiler that made it, by the same code beside an older compiler, and by
that compiler's code.
"""


def orders_block() -> str:
    """Return a table of every kernel and choice of passes: figures of the main loop and the speed."""
    rows = []
    found = _json(ORDERS)["rows"]
    base = {row["kernel"]: row for row in found if row["passes"] == "compiled"}
    before = {row["kernel"]: row["before"] for row in found if "before" in row}
    for row in found:
        facts = row.get("after", before[row["kernel"]])
        gain = median(base[row["kernel"]]["us"]) / median(row["us"])
        rows.append([
            f"`{row['kernel']}`", row["passes"], f"{facts['reuse_rate']:.1%}", str(facts["conflict_cycles"]),
            str(facts["stall_cycles"]), f"{gain:.3f} x",
        ])  # fmt: skip
    heading = ["kernel", "passes", "reuse rate", "conflict cycles", "sum of stalls", "speed"]
    return markdown_table(heading, rows, ["kernel", "passes"])


def mutations_block() -> str:
    """Return what became of the blind changes on a GPU, and what the check said of them."""
    return f"{_outcome(_json(MUTATIONS))}\n\nRun and judged again by later rules: {_outcome(_json(AGAIN))}"


def _outcome(data: dict[str, Any]) -> str:
    """Return sentences with the numbers of one record of `makers/sass_mutations.py`."""
    states, missed = data["states"], len(data["changed_and_not_accused"])
    changed = data["changed_and_accused"] + missed
    hung = f", {states['hung']:,} hung" if "hung" in states else ", none hung"
    uncertain = len(data.get("changed_and_uncertain", ()))
    doubt = f" {uncertain} of those found are to it only closer than recorded, not a fault." if uncertain else ""
    faults, judged, accused = states.get("fault", 0), data["same_and_judged"], data["same_and_accused"]
    return (
        f"Of {data['mutations']:,} changes, {data['runs']} runs each, {changed:,} gave other results or a fault "
        f"({faults:,} a fault{hung}). The check finds {changed - missed:,} of them and misses {missed}. "
        f"Of {judged:,} changes drawn from those with the same results in all runs it accuses {accused:,}.{doubt}"
    )


def latencies_block() -> str:
    """Return a table of the latencies that a GPU showed: a cycle more than the largest distance with other results."""
    rows = [
        [f"`{row['row'][0]}` {row['row'][1]}", f"`{row['row'][3]}` ({row['row'][4]})", str(row["changed_at"] + 1),
         str(row["ptxas"])]
        for row in _json(LATENCIES)["rows"] if row["changed_at"] is not None
    ]  # fmt: skip
    return markdown_table(["result", "reader", "cycles on an H200", "least by ptxas"], rows, ["result", "reader"])


def compilers_block() -> str:
    """Return a table of the ladder's times at 4096 by the archive's code and by an older compiler's."""
    times = [_times(load(name)) for name in COMPILERS]
    rows = [
        [f"`{name}`", *(f"{each[name] / 1e3:.3f}" for each in times), f"{times[0][name] / times[1][name]:.3f} x",
         f"{times[0][name] / times[2][name]:.3f} x"]
        for name in times[0] if all(name in each for each in times)
    ]  # fmt: skip
    heading = ["rung", "ms, archive beside NVRTC 13.5.37", "ms, archive beside 13.0.88", "ms, compiled by 13.0.88",
               "archive beside 13.0.88", "compiled by 13.0.88"]  # fmt: skip
    return markdown_table(heading, rows, ["rung"])


def _times(record: Record | None) -> dict[str, float]:
    results = () if record is None else record.results
    return {
        one.contestant.removeprefix("kernel:").partition("[")[0]: one.median_us
        for one in results
        if one.median_us is not None
    }


def _json(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


BLOCKS: Mapping[str, Callable[[], str]] = {
    "sass-orders": orders_block, "sass-mutations": mutations_block, "sass-measured": latencies_block,
    "compilers": compilers_block,
}  # fmt: skip
