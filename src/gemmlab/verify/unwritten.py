"""A hint at a result that is NaN because no thread wrote it: the elements that a run leaves as they were."""

from __future__ import annotations

import math

import numpy as np

from gemmlab.kernels.bound import PlacedKernel
from gemmlab.ops.op import Contents, Op, Problem
from gemmlab.verify.elementwise import Mismatch
from gemmlab.verify.guarded_run import GuardedRun

_NUMBER = 0.7109375
"""A number that no sum is likely to be. A type without fractions gets 1."""


def unwritten(
    placed: PlacedKernel, op: Op, problem: Problem, contents: Contents, wrong: Mismatch, *, shift: int = 0,
    threads: int = 1,
) -> str:  # fmt: skip
    """Return a sentence on the elements that no thread wrote, if the result `wrong` is one of them; else `""`.

    The output held nothing but NaN before the call (`contents`). The problem runs again with a number in place of it:
    a kernel that reads the output changes that number, and one that does not write it leaves it. `shift` is that of the
    run that gave the result (`GuardedRun`).
    """
    if not op.dot_length(problem):
        return ""  # Who adds nothing to a number leaves it, too.
    before = contents[wrong.output]
    if not math.isnan(wrong.value) or math.isnan(wrong.reference) or not np.isnan(before).all():
        return ""
    number = np.full_like(before, _NUMBER if np.issubdtype(before.dtype, np.floating) else 1)
    case = GuardedRun(placed, op, problem, {**contents, wrong.output: number}, shift=shift, threads=threads)
    observation = case.run()
    left = case.guarded[wrong.output].contents()
    same = left == number.view(left.dtype).reshape(left.shape)
    if not same[wrong.row, wrong.column] or (observation is not None and observation.stopped):
        return ""
    row, col = (int(place) for place in np.argwhere(same)[0])
    whole = same[row:, col:].all() and same.sum() == same[row:, col:].size
    name = wrong.output
    which = f"{name}[{row}.., {col}..]" if whole else f"some elements of {name}, the first one {name}[{row}, {col}]"
    return f"no thread wrote {which}: do grid and threads cover all of it?"
