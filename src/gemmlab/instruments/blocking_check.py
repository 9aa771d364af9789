"""The check of a CPU exercise: right results with the chosen blocks, and the counts of simulated caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gemmlab.core.expr import parse
from gemmlab.verify.check_report import CheckReport, Failure
from gemmlab.verify.verdict import UNEXPECTED, Verdict

if TYPE_CHECKING:
    from gemmlab.kernels.blocking_exercise import BlockingExercise
    from gemmlab.kernels.kernel import Kernel
    from gemmlab.verify.case_tally import Progress


def check_blocking(path: Path, seed: int, progress: Progress) -> CheckReport:
    """Check the kernel's results with a solution's blocks, then the simulated cache misses.

    Raises `UsageError` for a file that is no solution, and for blocks that the kernel does not take.
    """
    from gemmlab.devices.select import open_device
    from gemmlab.kernels.blocking_exercise import kernel_with_blocks
    from gemmlab.ops.catalog import find_op
    from gemmlab.verify.check import check_kernel

    exercise, kernel = kernel_with_blocks(path)
    op = find_op(kernel.op)
    cases = [case for size in ("33x35x31", exercise.size) for case in op.parse_sizes(size)]
    report = check_kernel(
        kernel, open_device("cpu"), op, config=kernel.params, cases=cases, seed=seed, progress=progress
    )  # fmt: skip
    report = replace(report, subject=str(path))
    broken = _broken(exercise, kernel) if report.passed else []
    if not broken:
        return report
    (problem,) = op.parse_sizes(exercise.size)
    failure = Failure(str(path), report.config, 1, problem.label, problem.to_json(), claims=tuple(broken))
    words = f"the results are right, but the exercise requires more: {broken[0]}"
    return replace(
        report, cases=report.cases + 1, planned=report.planned + 1, failures=(failure,),
        verdict=Verdict(UNEXPECTED, words),
    )  # fmt: skip


def _broken(exercise: BlockingExercise, kernel: Kernel) -> list[str]:
    """Return each statement of the exercise that does not hold for the simulated caches, with the figures."""
    from gemmlab.observe.cache_record import cache_rows, run_cache
    from gemmlab.ops.catalog import find_op
    from gemmlab.probes.cachesim import Caches, Level

    op = find_op(kernel.op)
    caches = Caches(Level.parse(exercise.l1), Level.parse(exercise.l2))
    record = run_cache([kernel], op, op.parse_sizes(exercise.size), caches, lambda _label, _done, _total: None)
    (row,) = cache_rows(record)
    figures: Mapping[str, float] = {
        name: value for name, value in asdict(row).items() if isinstance(value, int | float)
    }
    found = []
    for text in exercise.expect:
        statement = parse(text)
        if not statement(figures):
            shown = ", ".join(f"{name} = {figures[name]:.3g}" for name in sorted(statement.names))
            found.append(f"exercise {exercise.rung}: {text} does not hold at {exercise.size}: {shown}")
    return found
