"""The cause of a wrong result, where it is one of the commonest mistakes: elements that no thread wrote, and memory
that must not be read.
"""

from __future__ import annotations

from gemmlab.kernels.bound import PlacedKernel
from gemmlab.ops.op import Contents, Op, Problem
from gemmlab.verify.elementwise import Mismatch
from gemmlab.verify.nan_hint import nan_cause
from gemmlab.verify.unwritten import unwritten


def result_cause(
    placed: PlacedKernel, op: Op, problem: Problem, contents: Contents, wrong: Mismatch, *,
    sources: Contents | None = None, threads: int = 1,
) -> str:  # fmt: skip
    """Return a sentence on the cause of the result `wrong`; `""` if it is not one of the two mistakes.

    They are elements that no thread wrote (`unwritten`), and memory that must not be read (`nan_cause`).

    `contents` are the operands before the call; `sources` are those of them whose NaN may have reached the result
    (`nan_sources`), by default all.
    """
    return (
        unwritten(placed, op, problem, contents, wrong, threads=threads)
        or nan_cause(wrong, contents if sources is None else sources, placed.kernel)
        or ""
    )
