"""The block on the performance model beside another GPU's times, which a public repository states."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import combinations
from statistics import median
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import RESULTS

RECORD = "outside-ladder.json"


def ladder() -> str:
    """Return a table with one line for each kernel, the median error, and the pairs in the wrong order."""
    rows: list[dict[str, Any]] = json.loads((RESULTS / RECORD).read_text(encoding="utf-8"))["rows"]
    table = [
        [
            row["kernel"],
            f"{row['measured_gflops'] / 1e3:.2f}",
            f"{row['predicted_gflops'] / 1e3:.2f}",
            f"{_slower(row):.2f}",
        ]
        for row in rows
    ]
    pairs = list(combinations(rows, 2))
    wrong = [f"{_number(one)} and {_number(two)}" for one, two in pairs if _turned(one, two)]
    said = (
        f"The median error is {median(abs(_slower(row) - 1) for row in rows):.0%}. "
        f"Of the {len(pairs)} pairs of these kernels {len(wrong)} are in the wrong order ({', '.join(wrong)})."
    )
    heading = ["kernel", "measured, TFLOP/s", "predicted", "predicted / measured time"]
    return "\n\n".join([markdown_table(heading, table), said])


def locked() -> str:
    """Return a sentence on the kernels whose picture of times was made at a locked clock."""
    known: dict[str, Any] = json.loads((RESULTS / RECORD).read_text(encoding="utf-8"))["locked"]
    predicted = [f"{row['predicted_gflops'] / 1e3:.1f} for `{row['kernel']}`" for row in known["rows"]]
    return (
        f"The README of {known['repository']} has a picture of times on an {known['gpu']} locked at {known['mhz']} "
        f"MHz. At {known['size']}³ it shows about {known['measured_gflops'] / 1e3:.1f} TFLOP/s, and does not say by "
        "which of its kernels. The model predicts at that clock, in TFLOP/s, "
        f"{', '.join(predicted[:-1])} and {predicted[-1]}."
    )


def _slower(row: Mapping[str, Any]) -> float:
    return float(row["measured_gflops"] / row["predicted_gflops"])


def _turned(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    measured, predicted = (one[key] - two[key] for key in ("measured_gflops", "predicted_gflops"))
    return bool(measured * predicted <= 0)


def _number(row: Mapping[str, Any]) -> str:
    return str(row["kernel"]).partition(":")[0]


BLOCKS: Mapping[str, Callable[[], str]] = {"model-outside": ladder, "model-locked": locked}
