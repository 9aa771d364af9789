"""Predicted times of a counted ladder."""

from __future__ import annotations

import time
from dataclasses import dataclass

from gemmlab.analysis.model.model_record import recorded_model
from gemmlab.analysis.model.quoted_prediction import large_size, modelled, quote, reliability
from gemmlab.analysis.subject import machine
from gemmlab.core.errors import GemmlabError
from gemmlab.core.records import Record
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op

BUDGET_S = 15.0
"""Seconds after which a climb predicts no further kernel that has no recorded prediction."""


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
    """Name of the term of the model that has the largest share of the predicted time."""
    reliability: str


def predicted_rows(record: Record, budget_s: float = BUDGET_S) -> tuple[list[PredictedRow], list[str]]:
    """Return predicted times of a counted ladder on a GPU of the same architecture, and notes on missing ones.

    Times are for the operation's usual large size, not the counted one. Predictions for the same machine code come from
    the record in the package; others are computed, as long as fewer than `budget_s` seconds have passed.
    """
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
            notes.append(f"{kernel.id}: not predicted, no time was left (`gemmlab explain {kernel.id}` predicts it)")
            continue
        try:
            rows.append(row or _now(kernel.id, arch, facts["config"]))
        except GemmlabError as error:
            notes.append(f"{kernel.id}: not predicted: {error}")
    return rows, notes


def _recorded(kernel: str, gpu: str, code_sha256: str) -> PredictedRow | None:
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

    found_kernel = find_kernel(kernel)
    quoted = quote(modelled(found_kernel, arch, machine(arch)[1], config), found_kernel, config)
    found = quoted.prediction
    return PredictedRow(
        kernel, found.gpu, quoted.size, found.time_us, quoted.speed, quoted.unit, found.binds, quoted.reliability
    )
