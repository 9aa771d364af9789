"""Climb a ladder: verify every rung, then time the rungs in turns with gemmlab's own call and the peers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from gemmlab.core.errors import PeerError, UsageError, WrongResultError
from gemmlab.core.precision import FLOAT32
from gemmlab.core.records import Record, Result
from gemmlab.devices.device import Device
from gemmlab.devices.device_name import CPU, DeviceName
from gemmlab.kernels.bound import bind
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.rungs_on import no_ladder
from gemmlab.ops.footprint import operand_bytes, require_memory
from gemmlab.ops.op import Float32Array, Op, Problem
from gemmlab.results.climb_rows import short_size
from gemmlab.results.disturbance import disturbances
from gemmlab.timing.bench import run_bench
from gemmlab.timing.bench_plan import Plan
from gemmlab.timing.coretype import require_core_types, with_best_core_type
from gemmlab.timing.families import Family, family_of
from gemmlab.timing.peers import Spec, installed_peers, parse_contestant
from gemmlab.timing.prebuild import of_ladder, prebuild
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_report import CheckReport

CALL_LIMIT_S = 0.25
"""Most seconds of one call of a rung; a fifth of it for a quick climb.

The rung is timed at the largest size at which a call lasts no longer, or at the smallest size if there is none.
"""
TIMING_BUDGET_S = 15.0
"""Seconds that all turns together should last: they determine the number of rounds (`FEWEST_ROUNDS`, `MOST_ROUNDS`)."""
FEWEST_ROUNDS, MOST_ROUNDS = 3, 15
LIBRARY = Spec("gemmlab", "gemmlab")
Contents = dict[str, dict[str, Float32Array]]
"""Problem label -> operand name -> values, one-dimensional."""


@dataclass(frozen=True, slots=True)
class Step:
    """One message of progress for a live display: `done` of `total` parts; `total` is 0 if their number is unknown."""

    rung: str
    """Id of the kernel in work; empty if the message is not about one."""
    text: str
    done: int = 0
    total: int = 0
    final: bool = False
    """True for the last message about a rung, which a display keeps when others replace each other."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A verified kernel and the problem at which it will be timed."""

    kernel: Kernel
    threads: int
    report: CheckReport
    problem: Problem
    call_s: float
    """Approximate duration of one call in seconds."""


@dataclass(frozen=True, slots=True)
class Climb:
    """The ladder, peers, sizes and device of a climb. `quick` means shorter calls and the fewest rounds."""

    op: Op
    device: Device
    kernels: Sequence[Kernel]
    peers: Sequence[Spec]
    threads: int
    sizes: str = ""
    """Sizes to choose from, as text; empty for the defaults of the device's family."""
    quick: bool = False
    progress: Callable[[Step], None] = field(default=lambda _step: None, repr=False)
    mode: str = "warm"
    """State of the caches before a timed call: `"warm"` or `"cold"`."""

    @property
    def family(self) -> Family:
        """The settings of the device's family for the operation: sizes, peers and timing."""
        return family_of(self.device.family, self.op.name)

    @property
    def library(self) -> list[Spec]:
        """A list of one contestant, gemmlab's own call for arrays of the host (`Family.library_call`); empty without
        one.
        """
        return [replace(LIBRARY, mode=self.mode)] if self.family.library_call else []

    @property
    def call_limit_s(self) -> float:
        return CALL_LIMIT_S / 5 if self.quick else CALL_LIMIT_S


def run_climb(climb: Climb, *, bench: Callable[..., Record] = run_bench) -> tuple[Record, list[CheckReport]]:
    """Verify the rungs, time those that are right beside the library call, the peers and the peak; return the record
    and the reports of all rungs.

    A rung is timed at the largest problem that it finishes quickly, the library call at the largest of these, and the
    peers and the peak probe at each of them. Raises `UsageError` if there is nothing to climb or a library does not
    accept a peer's core type, `WrongResultError` if every rung is wrong, `PeerError` if nothing could be timed,
    `MemoryError` if a problem does not fit.
    """
    if not climb.kernels:
        raise no_ladder(climb.op.name, climb.device)
    sizes = climb.sizes or climb.family.climb_sizes
    problems = sorted(climb.op.parse_sizes(sizes), key=climb.op.flops)
    if not problems or climb.op.flops(problems[0]) == 0:
        raise UsageError(f"sizes {sizes!r}: a climb needs products that are not empty")
    require_core_types(climb.peers)
    reports: list[CheckReport] = []
    rungs: list[Rung] = []
    prebuild(of_ladder(climb.kernels), climb.device, lambda text: climb.progress(Step("", text)))
    contents: Contents = {}
    for kernel in climb.kernels:
        report = _verify(climb, kernel)
        reports.append(report)
        if report.passed:
            rungs.append(_choose(climb, kernel, report, problems, contents))
    if not rungs:
        raise WrongResultError("every rung is wrong:\n" + "\n".join(report.explain() for report in reports))
    top = max((rung.problem for rung in rungs), key=climb.op.flops)
    rounds = _rounds(climb, rungs, top)
    records = [_time(climb, rungs, top, threads, rounds, bench) for threads in sorted({1, climb.threads})]
    return _merge(climb, rungs, reports, records), reports


def _threads(climb: Climb, kernel: Kernel) -> int:
    return climb.threads if kernel.threaded else 1


def _verify(climb: Climb, kernel: Kernel) -> CheckReport:
    report = check_kernel(
        kernel, climb.device, climb.op, threads=_threads(climb, kernel),
        progress=lambda done, total: climb.progress(Step(kernel.id, "verifying", done, total)),
    )  # fmt: skip
    if not report.passed:
        climb.progress(Step(kernel.id, f"WRONG in {len(report.failures)} of {report.cases} cases", final=True))
    return report


def _choose(climb: Climb, kernel: Kernel, report: CheckReport, problems: Sequence[Problem], contents: Contents) -> Rung:
    threads = _threads(climb, kernel)
    problem, call_s = largest_quick_problem(climb, kernel, threads, problems, contents)
    text = f"{report.cases} cases right (error {report.worst_ratio:.2f} of bound), timed at {short_size(problem.label)}"
    climb.progress(Step(kernel.id, text, final=True))
    return Rung(kernel, threads, report, problem, call_s)


def largest_quick_problem(
    climb: Climb, kernel: Kernel, threads: int, problems: Sequence[Problem], contents: Contents
) -> tuple[Problem, float]:
    """Return the largest of `problems` at which one call stays within the climb's limit, and the seconds of a call.

    `problems` are sorted by size. The search ends at the first problem that takes longer or is expected to. If even the
    first takes longer, it is returned. `contents` caches the operands of each problem; missing ones are added. Raises
    `UsageError` without problems, `MemoryError` if one does not fit.
    """
    chosen: tuple[Problem, float] | None = None
    for problem in problems:
        per_flop = chosen[1] / climb.op.flops(chosen[0]) if chosen else 0.0
        if per_flop * climb.op.flops(problem) > climb.call_limit_s:
            break
        climb.progress(Step(kernel.id, f"trying {problem.label}"))
        seconds = _call_seconds(climb, kernel, threads, problem, contents)
        if chosen and seconds > climb.call_limit_s:
            break
        chosen = problem, seconds
    if chosen is None:
        raise UsageError("no problem to time")
    return chosen


def _call_seconds(climb: Climb, kernel: Kernel, threads: int, problem: Problem, contents: Contents) -> float:
    if problem.label not in contents:
        require_memory(operand_bytes(climb.op, problem), f"size {problem.label}")
        filled = climb.op.fill(problem, np.random.default_rng(0))
        contents[problem.label] = {name: np.ascontiguousarray(array).reshape(-1) for name, array in filled.items()}
    bound = bind(kernel, climb.device, climb.op, problem, contents[problem.label], threads=threads)
    bound.run()
    first_us = bound.time(1)[0]
    # Other programs on the processor make a short call look slow: take the fastest of several.
    return min(first_us, *bound.time(4 if first_us < climb.call_limit_s * 1e5 else 1)) / 1e6


def _rounds(climb: Climb, rungs: Sequence[Rung], top: Problem) -> int:
    if climb.quick:
        return FEWEST_ROUNDS
    per_flop = min(rung.call_s / climb.op.flops(rung.problem) for rung in rungs)
    flops = sum(climb.op.flops(problem) for problem in {rung.problem for rung in rungs} | {top})
    # Factor 2: every turn warms up with at least one call. Peers are assumed to be as fast as the fastest rung.
    seconds = 2 * (sum(rung.call_s for rung in rungs) + (len(climb.peers) + 1) * flops * per_flop)
    return max(FEWEST_ROUNDS, min(MOST_ROUNDS, int(TIMING_BUDGET_S / max(seconds, 1e-9))))


def _time(
    climb: Climb, rungs: Sequence[Rung], top: Problem, threads: int, rounds: int, bench: Callable[..., Record]
) -> Record:
    mine = [rung for rung in rungs if rung.threads == threads]
    where: dict[str, Problem] = {f"kernel:{rung.kernel.id}": rung.problem for rung in mine}
    where[LIBRARY.name] = top
    device, mode = climb.device.device_name, climb.mode
    specs = [
        Spec(
            f"kernel:{rung.kernel.id}", "kernel", kernel=rung.kernel.id, device=device, mode=mode,
            precision=rung.kernel.precision,
        )
        for rung in mine
    ]  # fmt: skip
    problems = sorted(set(where.values()), key=climb.op.flops)
    plan = Plan(
        op=climb.op, problems=problems, contestants=[*specs, *climb.library, *climb.peers], threads=(threads,),
        rounds=rounds, processes=1, only=lambda name, problem: where.get(name, problem) == problem, kind="climb",
        timing=climb.family.timing[mode], device=device, mode=mode,
    )  # fmt: skip
    started = time.perf_counter()
    return bench(
        plan, device=asdict(climb.device.describe()), progress=lambda p: climb.progress(
            Step("", f"{p.text} ({time.perf_counter() - started:.0f} s)", p.done, p.total)
        ),
    )  # fmt: skip


def _merge(climb: Climb, rungs: Sequence[Rung], reports: Sequence[CheckReport], records: Sequence[Record]) -> Record:
    by_name = {f"kernel:{rung.kernel.id}": rung for rung in rungs}
    results = [
        replace(result, facts={**result.facts, **_facts(result, by_name, climb.family.library_call)})
        for record in records
        for result in record.results
        if result.samples
    ]
    notes = dict.fromkeys(note for record in records for note in record.notes)
    notes |= {f"{report.subject} is wrong and was not timed": None for report in reports if not report.passed}
    merged = replace(records[0], results=tuple(results), notes=tuple(notes))
    return replace(merged, notes=(*notes, *disturbances(merged)))


def _facts(result: Result, rungs: Mapping[str, Rung], library: str) -> dict[str, Any]:
    if result.contestant in rungs:
        rung = rungs[result.contestant]
        kernel, report = rung.kernel, rung.report
        return {
            "name": kernel.id, "step": kernel.step, "idea": kernel.idea,
            "checked_cases": report.cases, "checked_error_ratio": report.worst_ratio,
        }  # fmt: skip
    if result.contestant == LIBRARY.name:
        return {"name": library}
    return {"name": result.contestant.removesuffix(":best")}


def missing_peers(device: DeviceName = CPU, op: str = "gemm") -> list[str]:
    """Return one sentence for each peer of a device that is not installed."""
    missing = []
    for name in sorted(family_of(device.family, op).peers):
        try:
            parse_contestant(name, device, op=op)
        except PeerError as error:
            missing.append(str(error))
    return missing


def default_peers(
    device: DeviceName = CPU, mode: str = "warm", op: str = "gemm", precisions: Collection[str] = (FLOAT32,)
) -> list[Spec]:
    """Return the installed peers that compute in one of `precisions`: NumPy with the core type that it chooses itself,
    OpenBLAS with the core type that is fastest on one thread. Raises `PeerError` if OpenBLAS runs with no core type.
    """
    names = ["numpy" if name.startswith("numpy") else name for name in installed_peers(device, op, precisions)]
    return [with_best_core_type(parse_contestant(name, device, mode, op), 1) for name in sorted(names)]
