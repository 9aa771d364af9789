"""The check of a CPU exercise whose solution is a file of values: right results with these values, and figures that
meet the exercise's criteria.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gemmlab.kernels.claims import OF_EXERCISE, judgement_line
from gemmlab.verify.check_report import CheckReport, Failure
from gemmlab.verify.verdict import PASSED, SOLVED, UNEXPECTED, Verdict, unsolved

if TYPE_CHECKING:
    from gemmlab.kernels.choice_exercise import ChoiceExercise, Chosen
    from gemmlab.kernels.kernel import Kernel
    from gemmlab.verify.case_tally import Progress

_RAGGED = {"gemm": "33x35x31", "reduce": "1001"}
"""Operation -> a size that is no multiple of a kernel's tile."""


def check_choice(path: Path, seed: int, progress: Progress) -> CheckReport:
    """Check the kernel with the values in the solution `path`. If its results are right, compare the figures of the
    values with the exercise's criteria; a criterion that is not met is a failure of the report.

    Raises `UsageError` for a file that is no solution, and for values that the kernel does not take.
    """
    from gemmlab.instruments.choice_figures import figures_of
    from gemmlab.kernels.choice_exercise import kernel_with_values

    exercise, kernel, chosen = kernel_with_values(path)
    report = _computed(path, exercise, kernel, chosen, seed, progress)
    if not report.passed:
        return report
    figures = figures_of(exercise, kernel, chosen)
    criteria = exercise.criteria()
    shown = tuple(judgement_line(one, figures) for one in criteria)
    broken = [one.result(figures) for one in criteria if not one.that(figures)]
    report = replace(report, criteria=shown, verdict=Verdict(SOLVED, ""))
    if not broken:
        return report
    claims = tuple(f"{OF_EXERCISE}{exercise.rung}: {one}" for one in broken)
    size = exercise.size_for(chosen)
    failure = Failure(str(path), report.config, exercise.threads, size or "the chosen values", {}, claims=claims)
    right = "the results are right; " if exercise.computes else ""
    return replace(
        report, cases=report.cases + 1, planned=report.planned + 1, failures=(failure,),
        verdict=Verdict(UNEXPECTED, f"{right}{unsolved(exercise.rung)}"),
    )  # fmt: skip


def _computed(
    path: Path, exercise: ChoiceExercise, kernel: Kernel, chosen: Chosen, seed: int, progress: Progress
) -> CheckReport:
    """Return the report on the kernel's results; one without cases, passed, for an exercise that computes nothing."""
    from gemmlab.devices.select import open_device
    from gemmlab.ops.catalog import find_op
    from gemmlab.verify.check import check_kernel

    if not exercise.computes:
        return CheckReport(
            str(path), "cpu", {}, 1, seed, 0, 0, (), 0.0, "", 0.0, "", 0.0, verdict=Verdict(PASSED, ""),
            computed=False,
        )  # fmt: skip
    op = find_op(kernel.op)
    cases = [case for size in (_RAGGED[kernel.op], exercise.size_for(chosen)) for case in op.parse_sizes(size)]
    report = check_kernel(
        kernel, open_device("cpu"), op, config=kernel.params, cases=cases, seed=seed, progress=progress,
        threads=exercise.threads,
    )  # fmt: skip
    return replace(report, subject=str(path))
