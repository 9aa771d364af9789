"""Reads of unwritten memory that reach no result of a kernel: runs of a problem with other contents of that memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gemmlab.core import stray_reads
from gemmlab.core.counters import Observation
from gemmlab.core.hazard import Hazard
from gemmlab.kernels.bound import PlacedKernel
from gemmlab.ops.op import Contents, Op, Problem
from gemmlab.verify.guarded_run import GuardedRun
from gemmlab.verify.guards import GuardedBuffer


def without_stray(
    placed: PlacedKernel, op: Op, problem: Problem, contents: Contents, observation: Observation,
    left: Mapping[str, GuardedBuffer], *, shift: int = 0,
) -> tuple[tuple[Hazard, ...], tuple[str, ...]]:  # fmt: skip
    """Return the hazards of a run that remain, and in words the reads of unwritten memory that reach no result
    (`stray_reads.without_stray`). `left` are the operands after the run, `shift` is the run's (`GuardedRun`).
    """

    def again(filling: int) -> Observation | None:
        case = GuardedRun(placed, op, problem, contents, shift=shift)
        outcome = case.run(filling=filling)
        same = all(np.array_equal(case.guarded[name].words, buffer.words) for name, buffer in left.items())
        return outcome if same else None

    return stray_reads.without_stray(observation, again)
