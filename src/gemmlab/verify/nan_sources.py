"""A search for the operands whose NaN reaches a result, among those that hold nothing but NaN before the call."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gemmlab.kernels.bound import PlacedKernel
from gemmlab.ops.op import Contents, Op, Problem
from gemmlab.verify.elementwise import Mismatch
from gemmlab.verify.guarded_run import GuardedRun


def nan_sources(
    placed: PlacedKernel, op: Op, problem: Problem, contents: Contents, wrongs: Sequence[Mismatch], *, shift: int,
    threads: int,
) -> Contents:  # fmt: skip
    """Return `contents` without the operands that hold only NaN and are not the cause of a result that is NaN.

    The problem runs with zeros in place of all such operands: if a result is still NaN, none of them is the cause, but
    memory such as that behind the end of a row. Otherwise, if there are several, the problem runs once for each, with
    zeros in the others. If no single one is the cause, or no wrong result is NaN, all of `contents` are returned.
    `shift` is that of the run that gave the results (`GuardedRun`).
    """
    suspects = [name for name, values in contents.items() if values.size and np.isnan(values).all()]
    if not suspects or not any(math.isnan(wrong.value) for wrong in wrongs):
        return contents
    outputs = [operand.name for operand in op.operands(problem) if operand.role != "in"]

    def reaches(name: str) -> bool:
        """Return whether an output has a NaN if, of the suspects, only `name` holds NaN; none does if it is empty."""
        others = {other: np.zeros_like(contents[other]) for other in suspects if other != name}
        case = GuardedRun(placed, op, problem, {**contents, **others}, shift=shift, threads=threads)
        case.run()
        return any(np.isnan(case.guarded[output].contents()).any() for output in outputs)

    if reaches(""):
        return {name: values for name, values in contents.items() if name not in suspects}
    if len(suspects) == 1:
        return contents
    innocent = [name for name in suspects if not reaches(name)]
    if len(innocent) == len(suspects):
        return contents
    return {name: values for name, values in contents.items() if name not in innocent}
