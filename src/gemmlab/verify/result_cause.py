"""The cause of a wrong result, where it is one of the commonest mistakes: writes that are not made, elements that no
thread wrote, memory that must not be read, and `__constant__` variables that nobody sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gemmlab.core.hazard import MISALIGNED, OUTSIDE, Hazard, is_write
from gemmlab.kernels.bound import PlacedKernel
from gemmlab.ops.op import Contents, Op, Problem
from gemmlab.toolchain.constant_values import zero_constants
from gemmlab.verify.elementwise import Mismatch
from gemmlab.verify.nan_hint import nan_cause
from gemmlab.verify.unwritten import unwritten


def result_cause(
    placed: PlacedKernel, op: Op, problem: Problem, contents: Contents, wrong: Mismatch, *,
    hazards: Sequence[Hazard] = (), sources: Contents | None = None, shift: int = 0, threads: int = 1,
) -> str:  # fmt: skip
    """Return a sentence on the cause of the result `wrong`; `""` if it is none of these mistakes.

    They are writes that were not made, elements that no thread wrote (`unwritten`), memory that must not be read
    (`nan_cause`), and, in a kernel file of one's own, `__constant__` variables that hold only zeros. `contents` are the
    operands before the run, `hazards` and `shift` (`GuardedRun`) are the run's; `sources` are those operands whose NaN
    may have reached the result (`nan_sources`), by default all.
    """
    return (
        _not_made(wrong, hazards)
        or unwritten(placed, op, problem, contents, wrong, shift=shift, threads=threads)
        or nan_cause(wrong, contents if sources is None else sources, placed.kernel)
        or _unset_constants(placed)
    )


def _not_made(wrong: Mismatch, hazards: Sequence[Hazard]) -> str:
    """Return a sentence on a result that is NaN if writes of its array were misaligned or out of bounds; else `""`."""
    if not math.isnan(wrong.value) or math.isnan(wrong.reference):
        return ""
    of_output = (one for one in hazards if one.space == "global" and one.array in ("", wrong.output.upper()))
    kinds = dict.fromkeys(one.kind for one in of_output if is_write(one) and one.kind in (MISALIGNED, OUTSIDE))
    return f"{wrong.output} was not written where writes are {' and '.join(kinds)}: those are not made" if kinds else ""


def _unset_constants(placed: PlacedKernel) -> str:
    kernel = placed.kernel
    if kernel.device != "cuda" or kernel.step is not None:
        return ""
    artifacts = [loaded.artifact for loaded in placed.loaded.values()]
    zero = dict.fromkeys(name for one in artifacts for name in zero_constants(one) if name not in kernel.constants)
    if not zero:
        return ""
    names, example = ", ".join(zero), f"constants = {{ {next(iter(zero))} = 1 }}"
    what = f"variables {names} hold" if len(zero) > 1 else f"variable {names} holds"
    return f"the __constant__ {what} only zeros: if a host program sets them, state the values, {example}"
