"""Time the naive kernel, the lowest rung of the ladder, for a bench, at the sizes that it finishes in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gemmlab.core.records import Result, Sample
from gemmlab.devices.device_name import DeviceName
from gemmlab.kernels.catalog import ladder
from gemmlab.ops.op import Op
from gemmlab.results.summary import BASELINE
from gemmlab.timing.families import family_of
from gemmlab.timing.peers import Spec
from gemmlab.timing.turns import Crew
from gemmlab.timing.verification import judge_outputs

CALL_LIMIT_S = 0.05
"""Seconds: timing ends at the first size at which a call is expected to last longer, by the time at the size before."""
TURNS = 5


def baseline_spec(op: Op, device: DeviceName, mode: str) -> Spec | None:
    """Return the first kernel of the ladder on `device` as a contestant; `None` if `op` has no ladder there."""
    rungs = ladder(op.name, device.kernels)
    return Spec(f"baseline:{rungs[0].id}", "kernel", kernel=rungs[0].id, device=device, mode=mode) if rungs else None


def sizes_for_baseline(op: Op, problems: Sequence[Any], family: str) -> list[Any]:
    """Return a list with the smallest default size of the family, or an empty list if one of `problems` is no larger.

    A bench adds it to its problems, so that the naive kernel finishes at least one of them in time.
    """
    small = min(op.parse_sizes(family_of(family, op.name).bench_sizes), key=op.flops)
    return [] if any(op.flops(problem) <= op.flops(small) for problem in problems) else [small]


def time_baseline(crew: Crew, spec: Spec, *, verify: bool = True) -> tuple[list[Result], list[str]]:
    """Return the results of `spec` on the crew's problems, smallest first, and the reasons why contestants were lost.

    Timing ends at the first problem on which a call is expected to last longer than `CALL_LIMIT_S`. A problem that the
    contestant does not support gives no result and no reason. The contestant has `TURNS` turns on each problem, on one
    thread, with no turns of other contestants in between. That is exact enough for a ratio of speeds near 100
    (`Row.to_naive`). With `verify` the result of the smallest problem is compared with the reference.
    """
    if not crew.join(spec):
        return [], [crew.lost[spec.name]]
    op, results, us_per_flop = crew.op, list[Result](), 0.0
    for index in sorted(range(len(crew.problems)), key=lambda i: op.flops(crew.problems[i])):
        problem = crew.problems[index]
        if us_per_flop * op.flops(problem) > CALL_LIMIT_S * 1e6:
            break
        result = _time(crew, spec, index, verify=verify and not results)
        if result is not None:
            results.append(result)
            us_per_flop = min(sample.time_us for sample in result.samples) / result.flops
    return results, list(crew.lost.values())


def _time(crew: Crew, spec: Spec, index: int, *, verify: bool) -> Result | None:
    op, problem, arena = crew.op, crew.problems[index], crew.arena
    if not crew.can(spec.name, index) or not crew.prepare(spec.name, index):
        return None
    outcome = None
    if verify:
        contents = arena.fill(index)
        arena.restore(index, contents)
        if not crew.run(spec.name, index):
            return None
        outcome = judge_outputs(arena, index, op.reference(problem, contents), contents)
        arena.restore(index, contents)
    samples = []
    for turn in range(TURNS):
        timed = crew.turn(spec.name, index)
        if timed is None:
            return None
        samples.append(Sample(0, turn, timed["time_us"], timed["calls"], timed["inner"], tuple(timed["raw_us"])))
    return Result(
        contestant=spec.name, problem=problem.to_json(), label=problem.label, flops=op.flops(problem), threads=1,
        bytes=op.bytes_moved(problem),
        facts={"role": BASELINE, **crew.facts[spec.name]}, samples=tuple(samples),
        verified=None if outcome is None else outcome.right,
        max_error_ratio=None if outcome is None else outcome.error_ratio,
        notes=("timed in a row, not in turns with the others", *(outcome.explanations if outcome else ())),
    )  # fmt: skip
