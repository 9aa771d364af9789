"""Print predicted times, marked as predictions: of one explained kernel, or of a counted ladder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from gemmlab.analysis.model.quoted_prediction import QuotedPrediction
    from gemmlab.core.records import Record

BUDGET_S = 15.0
"""Seconds that a climb spends on predicting kernels without a recorded prediction."""


@dataclass(frozen=True, slots=True)
class PredictedRow:
    """The predicted time of one rung on one GPU."""

    name: str
    gpu: str
    size: str
    time_us: float
    speed: float
    unit: str
    mostly: str
    """Name of the largest part of the time."""
    reliability: str


def predicted_rows(record: Record, budget_s: float = BUDGET_S) -> tuple[list[PredictedRow], list[str]]:
    """Return predicted times of a counted ladder on a GPU of the same architecture, and notes on missing ones.

    Predictions for the same machine code come from the record in the package; others are computed within `budget_s`.
    """
    from gemmlab.analysis.subject import machine
    from gemmlab.core.errors import GemmlabError
    from gemmlab.kernels.catalog import find_kernel

    arch, gpu = machine(str(record.device.get("facts", {}).get("arch", "")))
    started = time.monotonic()
    rows: list[PredictedRow] = []
    notes: list[str] = []
    for result in record.results:
        facts = result.facts
        if "code_sha256" not in facts:
            continue
        kernel = find_kernel(facts["name"])
        row = _recorded(kernel.id, gpu.name, facts["code_sha256"])
        if row is None and time.monotonic() - started > budget_s:
            notes.append(f"{kernel.id}: not predicted, no time was left (`gemmlab explain {kernel.id}` does it)")
            continue
        try:
            rows.append(row or _now(kernel.id, arch, facts["config"]))
        except GemmlabError as error:
            notes.append(f"{kernel.id}: not predicted: {error}")
    return rows, notes


def print_predictions(rows: Sequence[PredictedRow], notes: Sequence[str]) -> None:
    """Print the table, under a heading that says that the times are predicted, and notes."""
    from rich.table import Table
    from rich.text import Text

    from gemmlab.cli.console import table_console
    from gemmlab.results.climb_rows import digits, short_size

    console = table_console()
    if rows:
        console.print(f"\nPredicted, not measured: {rows[0].gpu} at {short_size(rows[0].size)}, cold caches")
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in ("", "predicted\nms", f"predicted\n{rows[0].unit if rows else ''}", "mostly"):
        table.add_column(Text(heading), justify="left" if heading in ("", "mostly") else "right")
    for row in rows:
        table.add_row(*map(Text, (row.name, digits(row.time_us / 1e3), digits(row.speed), row.mostly)))
    if rows:
        console.print(table)
    for text in dict.fromkeys(row.reliability for row in rows):
        names = [row.name for row in rows if row.reliability == text]
        few = "" if len(names) > len(rows) // 2 else f"{', '.join(names)}: "
        console.print(f"  {few}{text}")
    for note in notes:
        console.print(f"  note: {note}")


def rows_json(rows: Sequence[PredictedRow]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]


def print_quoted_prediction(console: Console, kernel: str, quoted: QuotedPrediction | str) -> None:
    """Print the predicted time of one kernel and its parts, or why there is none."""
    from rich.text import Text

    from gemmlab.results.climb_rows import digits, percent

    if isinstance(quoted, str):
        console.print(Text(f"\nNo time is predicted for {kernel}: {quoted}"))
        return
    found = quoted.prediction
    console.print(Text(f"\n{kernel}: predicted for {found.gpu} at {quoted.size}, not measured", style="bold"))
    total = f"{digits(found.time_us)} us, {digits(quoted.speed)} {quoted.unit}"
    waves = f"blocks an SM: {found.resident}, waves: {found.waves:.3g}"
    console.print(Text(f"  {total}; {waves}; mostly {found.binds}"))
    for name, time_us in found.terms.items():
        if time_us > 0:
            console.print(Text(f"  {digits(time_us):>9} us  {percent(time_us / found.time_us):>6}  {name}"))
    console.print(Text(f"  {quoted.reliability}"))


def _recorded(kernel: str, gpu: str, code_sha256: str) -> PredictedRow | None:
    from gemmlab.analysis.model.model_record import recorded_model
    from gemmlab.analysis.model.quoted_prediction import large_size, reliability
    from gemmlab.kernels.catalog import find_kernel
    from gemmlab.ops.catalog import find_op

    record, op = recorded_model(), find_op(find_kernel(kernel).op)
    problem = op.parse_sizes(large_size(op.name))[0]
    case = record.case(kernel, problem.label, code_sha256) if record is not None and record.gpu == gpu else None
    if case is None:
        return None
    mostly = max(case.terms, key=lambda term: case.terms[term])
    speed = op.work(problem) / case.predicted_us / 1e3
    trust = reliability(record, gpu, op.name, case.precision)
    return PredictedRow(kernel, gpu, case.size, case.predicted_us, speed, op.unit, mostly, trust)


def _now(kernel: str, arch: str, config: dict[str, int]) -> PredictedRow:
    from gemmlab.analysis.model.quoted_prediction import modelled, quote
    from gemmlab.analysis.subject import machine
    from gemmlab.kernels.catalog import find_kernel

    found_kernel = find_kernel(kernel)
    quoted = quote(modelled(found_kernel, arch, machine(arch)[1], config), found_kernel, config)
    found = quoted.prediction
    return PredictedRow(
        kernel, found.gpu, quoted.size, found.time_us, quoted.speed, quoted.unit, found.binds, quoted.reliability
    )
