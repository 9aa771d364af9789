"""The block on variants of main loops, compiled and written anew in machine code: their rates by size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import RESULTS

RECORD = "h200/peak-loops.json"
VARIANTS: Mapping[str, str] = {
    "torch.mm": "cuBLAS",
    "async_copy": "the rung, as compiled",
    "loop8": "one straight loop without a peeled last step, as compiled",
    "loop8_anti": "`loop8_mid` with every sum in the wrong bank: each FFMA reads two registers of one bank",
    "loop8_home": "FFMAs back and forth along rows, loads spread; sums where the compiler has them",
    "loop8_x": "and sums of even columns in odd registers",
    "loop8_mid": "and integer work where a step begins, the barrier a step earlier",
    "loop8_midcols": "the same, FFMAs back and forth along columns",
    "loop8_lean": "`loop8_mid` without copies of a pointer",
    "loop8_lean2": "and without the compiler's three idle loads",
    "loop8_nearlean": "`loop8_lean`, a load right behind each step's first FFMA",
    "loop8_wide": "a load every 16 FFMAs over the whole step, fragments waited for in halves",
    "loop8_split": "`loop8_lean2`, fragments waited for in halves",
    "stream8": "`loop8` by 132 blocks that stay, the last wave dealt out in steps, as compiled",
    "stream8_mid": "with the loop of `loop8_mid`",
    "stream8_near": "a load right behind each step's first FFMA",
    "stream8_nearidle": "and without idle loads",
    "stream8_wide": "with the loop of `loop8_wide`",
    "stream8_split": "with the loop of `loop8_split`",
}
"""Label of a variant in the record -> its difference from the one before it here, or from the one that
the words name.
"""


def rates() -> dict[tuple[str, int], float]:
    """Return the TFLOP/s of the median round by label and size."""
    rows: list[dict[str, Any]] = json.loads((RESULTS / RECORD).read_text(encoding="utf-8"))["rows"]
    return {(row["label"], int(row["size"])): 2e-6 * int(row["size"]) ** 3 / median(row["us"]) for row in rows}


def rates_block() -> str:
    """Return a table of TFLOP/s with one row for each variant and one column for each size."""
    found = rates()
    sizes = sorted({size for _label, size in found})
    rows = [
        [f"`{label}`", words, *(f"{found[label, size]:.1f}" for size in sizes)]
        for label, words in VARIANTS.items()
        if (label, sizes[0]) in found
    ]
    return markdown_table(["main loop", "what it is", *map(str, sizes)], rows, ["what it is"])


BLOCKS: Mapping[str, Callable[[], str]] = {"peak-loops": rates_block}
