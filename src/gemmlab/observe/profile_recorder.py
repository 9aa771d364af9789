"""Profile kernels, and a library for comparison, with Nsight Compute into a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import PeerError, UsageError
from gemmlab.core.precision import FLOAT32, comparable_precision
from gemmlab.core.records import Record, Result
from gemmlab.devices.device import Device
from gemmlab.kernels.by_name import NamedKernel
from gemmlab.observe.ncu import profile
from gemmlab.observe.ncu_program import find_ncu, version
from gemmlab.observe.profile import NO_BASELINE, Profile
from gemmlab.ops.op import Op, Problem
from gemmlab.timing.peers import Spec, kernel_spec, parse_contestant
from gemmlab.timing.prebuild import of_specs, prebuild

BASELINES: Mapping[str, tuple[str, ...]] = {
    "gemm": ("cublas", "torch", "cupy"), "reduce": ("cub", "torch", "cupy"), "sums": ("torch", "cupy"),
}  # fmt: skip
"""Operation -> libraries to compare with; the first that is installed is profiled."""
HOW = (
    "counts by instruction come from instrumented code and are exact; hardware counters, stalls and hit rates are "
    "of this one launch, with caches flushed before it and clocks left alone, so its time is no benchmark's"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The kernels and problems to profile on a GPU."""

    op: Op
    device: Device
    problems: Sequence[Problem]
    kernels: Sequence[NamedKernel]
    config: Mapping[str, int] = field(default_factory=dict)
    baseline: bool = True
    """True if a library (`BASELINES`) is profiled too."""
    ncu: str = "ncu"
    """Name or path of Nsight Compute's command line."""


def profile_on_gpu(plan: Plan) -> Record:
    """Profile the kernels of `plan`, and a library unless `baseline` is False; return the record.

    Raises `ProfilerError` when ncu is missing or lacks permission, `PeerError` when it fails, `UsageError` for a report
    that cannot be used.
    """
    ncu, device = find_ncu(plan.ncu), plan.device
    ours = [replace(kernel_spec(one, device.device_name, "warm"), config=plan.config) for one in plan.kernels]
    beside, notes = _baselines(plan, ours) if plan.baseline else ([], [])
    prebuild(of_specs(plan.op, ours, plan.problems), device, compiled=True)
    by_label = {problem.label: problem for problem in plan.problems}
    found = profile([*ours, *beside], plan.op.name, plan.problems, ncu)
    described = {**asdict(device.describe()), "profiler": version(ncu)}
    results = tuple(_result(plan.op, by_label[one.size], one) for one in found)
    return Record("profile", plan.op.name, describe_environment(), described, None, results, (HOW, *notes))


def _baselines(plan: Plan, ours: Sequence[Spec]) -> tuple[list[Spec], list[str]]:
    """Return the first installed library for each precision of the kernels, and notes for precisions without one."""
    names = BASELINES.get(plan.op.name, ())
    if not names:
        return [], [f"{NO_BASELINE}: no library is profiled for {plan.op.name}"]
    found, notes = list[Spec](), list[str]()
    for precision in dict.fromkeys(comparable_precision(spec.precision) for spec in ours):
        why = []
        for name in names:
            text = name if precision == FLOAT32 else f"{name}:{precision}"
            try:
                found.append(parse_contestant(text, plan.device.device_name, "warm", plan.op.name))
            except (PeerError, UsageError) as error:
                why.append(str(error))
                continue
            break
        else:
            notes.append(f"{NO_BASELINE}: {'; '.join(why)}")
    return found, notes


def _result(op: Op, problem: Problem, one: Profile) -> Result:
    ran = {
        "origin": one.origin, "kernels": list(one.kernels), "counts": dict(one.counts), "metrics": dict(one.metrics),
        "opcodes": dict(one.opcodes),
    }  # fmt: skip
    return Result(
        contestant=one.contestant, problem=problem.to_json(), label=one.size, flops=op.flops(problem), threads=1,
        facts={**one.facts, "name": one.name, **ran}, notes=one.notes, bytes=op.bytes_moved(problem),
    )  # fmt: skip
