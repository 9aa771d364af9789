"""Blocks on the products by tensor cores with float32's accuracy: errors and speeds, from records of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from blocks.markdown import machine, markdown_table
from blocks.records import if_recorded, if_there, medians
from gemmlab.core.records import Record

ERRORS, SCHEMA = "h200/float32-errors.json", "gemmlab.float32-errors/1"
LINES, LINES_SCHEMA = "h200/float32-lines.json", "gemmlab.float32-lines/1"
SPEEDS = "h200/float32.json"
OURS, CUBLAS = "gemmlab:float32", "cublas"
WAYS = {
    "f16x3": "f16x3", "bf16x6": "bf16x6", "bf16x9": "bf16x9", "float32": "by_tile", "naive": "naive", "torch": "torch"
}  # fmt: skip
"""Name of a way in the record -> what computed it, the heading of its column."""


TF32_WAYS = {"tf32": "persistent", "torch:tf32": "torch"}
"""As `WAYS`, for products whose inputs are rounded to TF32."""


def tf32_errors(record: Mapping[str, Any]) -> str:
    """Return a table of products by TF32 as `errors` does, for the length of sums at which they were computed."""
    computed = [row for row in record["rows"] if "tf32" in row["errors"]]
    length = computed[0]["k"]
    rows = [[row["data"], *("{:,.1f} / {:,.2f}".format(*row["errors"][way]) for way in TF32_WAYS)] for row in computed]
    table = markdown_table(["data", *(f"`{way}`" for way in TF32_WAYS.values())], rows, ("data",))
    return f"{table}\n\n{_units(record)}; {length:,} terms. `torch` is cuBLAS with TF32 allowed. {_made(record)}"


def errors(record: Mapping[str, Any]) -> str:
    """Return a table with one row for each kind of data: the largest error of each way to compute and the root mean
    square of its errors, in units of 2^-24.
    """
    rows = [
        [row["data"], f"{row['k']:,}", *("{:.2f} / {:.3f}".format(*row["errors"][way]) for way in WAYS)]
        for row in record["rows"]
    ]
    table = markdown_table(["data", "K", *(f"`{way}`" for way in WAYS.values())], rows, ("data",))
    return (
        f"{table}\n\n{_units(record)}. `by_tile` is named as the kernel: "
        '`precision="float32"` by itself chooses multiply-adds for short sums and small products. '
        f"`naive` is one chain of multiply-adds, `torch` cuBLAS in float32. {_made(record)}"
    )


def _units(record: Mapping[str, Any]) -> str:
    m, n = record["shape"]
    return f"Largest error / root mean square over {m} x {n} results, in units of 2⁻²⁴ (abs(A) abs(B))"


def _made(record: Mapping[str, Any]) -> str:
    when = str(record["environment"].get("time_utc", ""))[:10]
    return f"{record['device']}, {when}; `makers/float32_errors.py` makes the record."


def speeds(record: Record) -> str:
    """Return a table with one row for each size: each contestant's median time, and its speed relative to cuBLAS's
    float32 call.
    """
    times = medians(record)
    names = list(dict.fromkeys(name for found in times.values() for name in found))
    rows = [
        [f"`{label}`", *(f"{found[name]:,.0f} ({found[CUBLAS] / found[name]:.2f})" for name in names if name in found)]
        for label, found in times.items()
    ]
    table = markdown_table(["m x n x k", *(f"`{name}`" for name in names)], rows, ())
    return (
        f"{table}\n\nMedian microseconds, splitting included, cold caches (in brackets `cublas`'s time divided by it); "
        f"{machine(record)}, {str(record.environment.get('time_utc', ''))[:10]}."
    )


def lines(record: Mapping[str, Any]) -> str:
    """Return a table with one row for each kind of data: median times by size, and the speed relative to clean data."""
    times = {
        size: {name: median(values) for name, values in found.items()} for size, found in record["times_us"].items()
    }
    rows = [
        [name, *(f"{found[name]:,.0f} ({found['clean'] / found[name]:.2f})" for found in times.values())]
        for name in next(iter(times.values()))
    ]
    table = markdown_table(["data", *(f"{size}³" for size in times)], rows, ("data",))
    when = str(record["environment"].get("time_utc", ""))[:10]
    return (
        f"{table}\n\nMedian microseconds of the library call, cold caches (in brackets the speed relative to clean "
        f"data). {record['device']}, {when}; `makers/float32_lines.py` makes the record."
    )


def in_short(record: Record) -> str:
    """Return one sentence, for README: the speed relative to cuBLAS at square products."""
    squares = {label: found for label, found in medians(record).items() if len(set(label.split("x"))) == 1}
    ratios = [
        f"{found[CUBLAS] / found[OURS]:.2f} x at {label.partition('x')[0]}³"
        for label, found in squares.items()
        if {CUBLAS, OURS} <= set(found)
    ]
    return f'Speed of `precision="float32"` relative to cuBLAS in float32: {", ".join(ratios)}; {machine(record)}.'


BLOCKS: Mapping[str, Callable[[], str]] = {
    "float32-errors": if_there(ERRORS, SCHEMA, errors), "tf32-errors": if_there(ERRORS, SCHEMA, tf32_errors),
    "float32-speeds": if_recorded(SPEEDS, speeds),
    "float32-lines": if_there(LINES, LINES_SCHEMA, lines), "float32-readme": if_recorded(SPEEDS, in_short),
}  # fmt: skip
