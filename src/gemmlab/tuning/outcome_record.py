"""The outcome of a search as a record of a bench: `gemmlab report` and `gemmlab compare` read it."""

from __future__ import annotations

from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import UsageError
from gemmlab.core.records import Method, Record, Result, Sample
from gemmlab.tuning.device_bench import Subject
from gemmlab.tuning.session import Tuning

REASONS = "reasons"
"""Key of the fact that lists the counters that move with the time, as texts. Only a result that differs from the best
in one parameter has it, and only if a counter moves.
"""


def require_measured(family: str) -> None:
    """Raise `UsageError` for a family of devices on which times are predicted: a record is only for measurements."""
    if family == "emulated":
        raise UsageError("--save: the times are predicted, not measured; --json prints them")


def record_of(found: Tuning, of: Subject) -> Record:
    """Return a search's outcome as a record: a contestant for each configuration with times, its turns as samples.

    Raises `UsageError` for predicted times.
    """
    require_measured(of.device.family)
    info, op, problem = of.device.describe(), of.op, of.problem
    reasons = {(*change.names, *change.after): change.reasons for change in found.sensitivity.single}
    results = []
    for row in found.rows:
        changed = {name: value for name, value in row.config.items() if found.sensitivity.best[name] != value}
        text = ",".join(f"{name}={value}" for name, value in row.config.items())
        why = reasons.get((*changed, *changed.values()), ())
        results.append(
            Result(
                contestant=f"kernel:{found.kernel}[{text}]", problem=problem.to_json(), label=problem.label,
                flops=op.flops(problem), bytes=op.bytes_moved(problem), threads=of.threads,
                facts={
                    "role": "rung", "precision": of.named.kernel.precision, "config": dict(row.config),
                    "resources": dict(row.facts), **({REASONS: list(why)} if why else {}),
                },
                samples=tuple(Sample(0, at, us, 1, 1) for at, us in enumerate(row.samples)), verified=True,
            )
        )  # fmt: skip
    notes = [f"cannot win: {text}: {fault}" for text, fault in found.faults.items()]
    method = Method(
        rounds=max(row.turns for row in found.rows), processes=1, min_time_us=0.0, warm_up_us=0.0, inner_us=0.0,
        raw_limit=0, interleaved=True, seed=0, notes=("a search: gemmlab tune",), mode=of.mode,
    )  # fmt: skip
    device = {"id": info.id, "name": info.name, "facts": dict(info.facts)}
    return Record("bench", op.name, describe_environment(), device, method, tuple(results), tuple(notes))
