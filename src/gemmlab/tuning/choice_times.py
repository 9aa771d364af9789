"""Times of the kernels that `gemmlab.gemm` may choose, measured in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from pathlib import Path

from gemmlab.core.errors import GemmlabError
from gemmlab.core.stats import geometric_mean, spread
from gemmlab.devices.device import Device
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.timing.bench import run_bench
from gemmlab.timing.bench_plan import Plan
from gemmlab.timing.families import family_of
from gemmlab.timing.peers import Spec

LEAST_GAIN = 1.01
"""The least ratio of the shipped choice's time to the time of a choice that is stored in its place."""
FINALISTS, FINAL_ROUNDS = 3, 9
"""Number of choices that are timed once more beside the shipped one, and in how many rounds."""
Report = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Request:
    """The products to measure, and the time budget."""

    device: Device
    mode: str
    budget_s: float
    problems: Sequence[GemmProblem]
    folder: Path
    """The folder of the searches' journals."""
    report: Report = field(default=lambda _text: None)
    """Function that is called with a line of text on the progress."""
    fresh: bool = False
    """True to measure anew what an earlier search measured, and what the store has."""


def median_times(
    request: Request,
    problems: Sequence[GemmProblem],
    specs: Sequence[Spec],
    rounds: int,
    threads: int = 1,
    budget_s: float = inf,
) -> dict[str, float]:
    """Return contestant -> median time in microseconds, for several problems the geometric mean of these.

    After `budget_s` seconds no contestant has a second turn at a problem. Contestants without a right result at each
    problem are left out. The result is empty if the bench fails.
    """
    timing = family_of(request.device.family).timing[request.mode]
    plan = Plan(
        op=GemmOp(), problems=problems, contestants=specs, threads=(threads,), rounds=rounds, processes=1,
        budget_s=budget_s, timing=timing, probe=False,
        device=request.device.device_name, mode=request.mode,
    )  # fmt: skip
    try:
        record = run_bench(plan)
    except GemmlabError as error:
        request.report(f"{problems[0].label}: {error}")
        return {}
    found: dict[str, list[float]] = {spec.name: [] for spec in specs}
    for result in record.results:
        if result.verified and result.samples and result.contestant in found:
            found[result.contestant].append(spread([sample.time_us for sample in result.samples]).median)
    return {name: geometric_mean(times) for name, times in found.items() if len(times) == len(problems)}


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
