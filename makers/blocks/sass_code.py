"""Blocks on the encoding of machine code: the catalog's code decoded and encoded again, the bits without a name that
are copied unchanged, and latencies.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import RESULTS
from gemmlab.sass.checking.latencies import TIGHT, latencies

RECORD = "emulated/sass-words.json"
_ARCHS = ("sm_80", "sm_89", "sm_90")
_SHOWN_OPCODES = 6
_PRODUCERS = ("FFMA", "IADD3", "IMAD", "IMAD.WIDE", "HFMA2.MMA", "ISETP", "UIADD3", "ULDC", "HMMA.1688.F32.TF32")


def _rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((RESULTS / RECORD).read_text(encoding="utf-8"))["rows"]
    return found


def round_trip_block() -> str:
    """Return a table by architecture: builds and instruction words that were decoded and encoded again."""
    lines = [[row["arch"], f"{row['builds']}", f"{row['words']:,}", f"{len(row['carried'])}"] for row in _rows()]
    return markdown_table(["for", "builds, the same to the byte", "instruction words", "fields carried along"], lines)


def carried_block() -> str:
    """Return a table of the fields without a name, over all architectures, the most frequent first."""
    times: Counter[str] = Counter()
    opcodes: dict[str, set[str]] = {}
    for row in _rows():
        for name, count, some in row["carried"]:
            times[name] += count
            opcodes.setdefault(name, set()).update(some)
    lines = []
    for name, count in times.most_common():
        some = sorted(opcodes[name])
        more = f" and {len(some) - _SHOWN_OPCODES} more" if len(some) > _SHOWN_OPCODES else ""
        low, high = name.split("_")[1:]
        lines.append([f"{low} to {high}", f"{count:,}", ", ".join(some[:_SHOWN_OPCODES]) + more])
    return markdown_table(["bits", "words in which they are not zero", "opcodes"], lines, ["opcodes"])


def latencies_block() -> str:
    """Return a table by architecture: the cycles after which results of some instructions can be read."""
    lines = []
    for producer in _PRODUCERS:
        cells = []
        for arch in _ARCHS:
            rows = {
                row: cycles for row, cycles in latencies(arch).rows.items() if row[0] == producer and row[2] == "read"
            }
            tight = [cycles for cycles in rows.values() if cycles <= TIGHT] or [min(rows.values(), default=0)]
            cells.append(f"{min(tight)} to {max(tight)}" if rows else "")
        lines.append([f"`{producer}`", *cells])
    return markdown_table(["result of", *_ARCHS], lines, _ARCHS)


BLOCKS: Mapping[str, Callable[[], str]] = {
    "sass-round-trip": round_trip_block, "sass-carried": carried_block, "sass-latencies": latencies_block,
}  # fmt: skip
