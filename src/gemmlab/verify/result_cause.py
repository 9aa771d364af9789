"""The cause of a wrong result, where it is one of the commonest mistakes: writes that are not made, elements that no
thread wrote, and memory that must not be read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gemmlab.core.hazard import MISALIGNED, OUTSIDE, Hazard, is_write
from gemmlab.kernels.bound import PlacedKernel
from gemmlab.ops.op import Contents, Op, Problem
from gemmlab.verify.elementwise import Mismatch
from gemmlab.verify.nan_hint import nan_cause
from gemmlab.verify.unwritten import unwritten


def result_cause(
    placed: PlacedKernel, op: Op, problem: Problem, contents: Contents, wrong: Mismatch, *,
    hazards: Sequence[Hazard] = (), sources: Contents | None = None, shift: int = 0, threads: int = 1,
) -> str:  # fmt: skip
    """Return a sentence on the cause of the result `wrong`; `""` if it is not one of the three mistakes.

    They are writes that were not made, elements that no thread wrote (`unwritten`), and memory that must not be read
    (`nan_cause`). `contents` are the operands before the run, `hazards` and `shift` (`GuardedRun`) are the run's;
    `sources` are those operands whose NaN may have reached the result (`nan_sources`), by default all.
    """
    return (
        _not_made(wrong, hazards)
        or unwritten(placed, op, problem, contents, wrong, shift=shift, threads=threads)
        or nan_cause(wrong, contents if sources is None else sources, placed.kernel)
        or ""
    )


def _not_made(wrong: Mismatch, hazards: Sequence[Hazard]) -> str:
    """Return a sentence on a result that is NaN if writes of its array were misaligned or out of bounds; else `""`."""
    if not math.isnan(wrong.value) or math.isnan(wrong.reference):
        return ""
    of_output = (one for one in hazards if one.space == "global" and one.array in ("", wrong.output.upper()))
    kinds = dict.fromkeys(one.kind for one in of_output if is_write(one) and one.kind in (MISALIGNED, OUTSIDE))
    return f"{wrong.output} was not written where writes are {' and '.join(kinds)}: those are not made" if kinds else ""
