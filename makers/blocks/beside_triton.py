"""Speed and errors of Triton's products with float32's accuracy, beside gemmlab's, from a record of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blocks.markdown import machine, markdown_table
from blocks.records import from_record
from gemmlab.core.records import Record, Result
from gemmlab.core.stats import Ratio, Timings, ratio_of_medians, spread

RECORD = "h200/triton.json"
TRITON = "triton:"
COMPARED = {"gemmlab:float32": ("triton:tf32x3", "triton:bf16x6"), "gemmlab:bf16x6": ("triton:bf16x6",)}
"""A contestant of gemmlab's -> the ones of Triton's that it is compared with: at each size with the fastest of them."""


def beside_triton(record: Record) -> str:
    """Return a table with a row for each size and contestant, and sentences on gemmlab's speeds relative
    to Triton's.
    """
    rows = [_row(result) for result in record.results]
    data = list(record.results[0].facts["errors"]) if record.results else []
    heading = ["n", "contestant", "us", "IQR", "TFLOP/s", *(f"errors, {one}" for one in data), "configuration"]
    table = markdown_table(heading, rows, ("contestant", "configuration"))
    versions = ", ".join(sorted({f"{r.facts['library']} {r.facts['version']}" for r in record.results}))
    told = "".join(f" {_told(ours, theirs, record)}" for ours, theirs in COMPARED.items())
    notes = "".join(f" {note[0].upper()}{note[1:]}." for note in record.notes)
    return (
        f"{table}\n\nMedian times of an n x n x n product on normal data with cold caches, and the spread between "
        "rounds; largest error / root mean square, in units of 2⁻²⁴ (abs(A) abs(B)). Triton's kernel is a plain tiled "
        f"one, in the fastest of its configurations at each size.{told}{notes} {versions}; {machine(record)}, "
        f"{str(record.environment.get('time_utc', ''))[:10]}; `makers/triton_beside.py` makes the record."
    )


def _row(result: Result) -> list[str]:
    over = spread(list(_timings(result).values()))
    errors: Mapping[str, Any] = result.facts["errors"]
    return [
        result.label.partition("x")[0], f"`{result.contestant}`", f"{over.median:,.1f}", f"{over.iqr:.1f}",
        f"{result.flops / over.median / 1e6:.1f}", *(f"{most:.2f} / {rms:.3f}" for most, rms in errors.values()),
        result.facts["configuration"] if result.contestant.startswith(TRITON) else "",
    ]  # fmt: skip


def _told(ours: str, theirs: tuple[str, ...], record: Record) -> str:
    """Return a sentence on how many times as fast `ours` is as the fastest of `theirs` at each size, with 95 %
    intervals; empty if no size has both.
    """
    found = {(result.label, result.contestant): result for result in record.results}
    said = []
    for label in dict.fromkeys(result.label for result in record.results):
        own, rivals = found.get((label, ours)), [found[label, one] for one in theirs if (label, one) in found]
        if own is not None and rivals:
            over = min((_faster(rival, own) for rival in rivals), key=lambda ratio: ratio.value)
            said.append(f"{over.value:.2f} ({over.low:.2f}-{over.high:.2f}) at {label.partition('x')[0]}")
    beside = " or ".join(f"`{one}`" for one in theirs)
    return f"`{ours}` beside {beside}, times as fast: {', '.join(said)}." if said else ""


def _faster(slow: Result, fast: Result) -> Ratio:
    return ratio_of_medians(_timings(slow), _timings(fast))


def _timings(result: Result) -> Timings:
    return {(sample.process, sample.round): sample.time_us for sample in result.samples}


BLOCKS: Mapping[str, Callable[[], str]] = {"float32-triton": from_record(RECORD, beside_triton)}
