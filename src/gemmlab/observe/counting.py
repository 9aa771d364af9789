"""Run kernels on a counting device: verify their results and record counters and hazards of the machine code."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from gemmlab.core.counters import Counters
from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import CompileError, DeviceError, TimeLimitError, UsageError
from gemmlab.core.hazard_cures import with_cures
from gemmlab.core.hazard_source import with_source
from gemmlab.core.records import Record, Result
from gemmlab.devices.device import CountingDevice, Device
from gemmlab.kernels.bound import PlacedKernel, place
from gemmlab.kernels.fitting import as_taken, factor_notes, same_for_all
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.footprint import check_bytes, require_memory
from gemmlab.ops.op import Op, Problem
from gemmlab.verify.elementwise import Mismatch
from gemmlab.verify.guarded_run import GuardedRun, compare_all
from gemmlab.verify.result_cause import result_cause
from gemmlab.verify.stray_words import without_stray

Progress = Callable[[str, int, int], None]
"""A function that is called with (description of the run, runs done, all runs)."""
MOST_HAZARDS = 8
"""Most hazards of one run that a record stores."""


@dataclass(frozen=True, slots=True)
class Count:
    """Kernels and problems to count, and the device. Kernels that cannot start within `budget_s` seconds are left out,
    with a note in the record.
    """

    op: Op
    device: Device
    kernels: Sequence[Kernel]
    problems: Sequence[Problem]
    seed: int = 0
    config: Mapping[str, int] = field(default_factory=dict)
    verify: bool = True
    """False if results are not compared with the reference; hazards are reported in any case."""
    budget_s: float = float("inf")


def count_kernels(count: Count, progress: Progress = lambda _text, _done, _total: None) -> Record:
    """Run every kernel once on every problem and return a record of the device's counters.

    Kernels are compared on the same problems: those of `same_for_all`, each in a layout that the kernel reads.
    The record has a note in place of counters for a kernel that does not compile, does not take a problem or fails on
    the device. Raises `UsageError` if the device does not count, there is nothing to count or a kernel has no such
    `config`, `MemoryError` for problems that need too much memory, `TimeLimitError` when the current time limit passes.
    """
    device = count.device
    if not isinstance(device, CountingDevice):
        raise UsageError(f"the device {device.id} counts nothing")
    if not count.kernels or not count.problems:
        raise UsageError(f"nothing to count: no {'problems' if count.kernels else 'kernels'}")
    problems, same = same_for_all(count.kernels, count.op, count.problems)
    for problem in problems:
        require_memory(check_bytes(count.op, problem), f"size {problem.label}")
    results: list[Result] = []
    notes = same if len(count.kernels) > 1 else []
    started = time.monotonic()
    total = len(count.kernels) * len(problems)
    for kernel in count.kernels:
        if time.monotonic() - started > count.budget_s:
            notes.append(f"{kernel.id} was left out: no time was left")
            continue
        placed = place(kernel, device, count.config)
        for problem in problems:
            progress(f"{kernel.id} {problem.label}", len(results), total)
            try:
                results.append(_result(count, placed, as_taken(kernel, count.op, problem)))
            except TimeLimitError as error:
                done = f"{len(results)} of {total} counted at the time limit"
                raise TimeLimitError(f"{done}, at {problem.label}: {error}", error.progress) from error
    described = asdict(device.describe())
    return Record("count", count.op.name, describe_environment(), described, None, tuple(results), tuple(notes))


def _result(count: Count, placed: PlacedKernel, problem: Problem) -> Result:
    kernel, op = placed.kernel, count.op
    facts: dict[str, Any] = {
        "role": "rung", "name": kernel.id, "step": kernel.step, "idea": kernel.idea, "config": dict(placed.config),
        "precision": kernel.precision,
    }  # fmt: skip
    notes = tuple(f"it {note}" for note in factor_notes(kernel, op))
    verified: bool | None = None
    worst: float | None = None
    try:
        contents = op.fill(problem, np.random.default_rng(count.seed))
        run = GuardedRun(placed, op, problem, contents)
        observation = run.run()
        assert observation is not None  # noqa: S101 - the device counts
    except (CompileError, DeviceError, UsageError) as error:
        notes = (*notes, str(error))
    else:
        scalars = op.scalars(problem)
        roundings = kernel.roundings(kernel.instantiate(placed.config, scalars), scalars)
        expected = op.reference(problem, contents, roundings, kernel.precision) if count.verify else {}
        found = compare_all(op, problem, expected, run.guarded)
        found_hazards, strays = observation.hazards, tuple[str, ...]()
        if found and all(item.mismatch is None for item in found):
            found_hazards, strays = without_stray(placed, op, problem, contents, observation, run.guarded)
        cured = with_cures(with_source(found_hazards))[:MOST_HAZARDS]
        hazards = [hazard.without_folders() for hazard in cured]
        notes = (*notes, *(f"it {stray}" for stray in strays))
        mismatches = [item.mismatch for item in found if item.mismatch is not None]
        causes = [
            "" if observation.stopped
            else result_cause(placed, op, problem, contents, one, hazards=observation.hazards) for one in mismatches
        ]  # fmt: skip
        wrong = ["; ".join(filter(None, pair)) for pair in zip(map(Mismatch.explain, mismatches), causes, strict=True)]
        notes = (*notes, *wrong, *(hazard.explain() for hazard in hazards))
        if found or hazards:
            verified = not wrong and not hazards
        if hazards:
            facts["right"] = not wrong if found else None
        worst = max((item.worst_ratio for item in found), default=None)
        facts |= {**_code(placed), **_counted(observation.counters), "hazards": [asdict(hazard) for hazard in hazards]}
    return Result(
        contestant=f"kernel:{kernel.id}", problem=problem.to_json(), label=problem.label, flops=op.flops(problem),
        threads=1, facts=facts, verified=verified, max_error_ratio=worst, notes=notes,
    )  # fmt: skip


def _code(placed: PlacedKernel) -> dict[str, Any]:
    """Return facts of the machine code: target, compiler, digest, resources; of several codes those loaded last."""
    artifacts = [loaded.artifact for loaded in placed.loaded.values()]
    newest = artifacts[-1]
    return {
        "target": newest.target, "compiler": newest.compiler, "code_sha256": newest.digest,
        "resources": dict(newest.resources),
    }  # fmt: skip


def _counted(counters: Counters) -> dict[str, Any]:
    return {
        "origin": counters.origin,
        "counters": {name: asdict(metric) for name, metric in counters.totals().items()},
        "facts": dict(counters.facts()),
        "opcodes": counters.opcodes(),
    }
