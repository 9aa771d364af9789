"""A hint at the commonest mistake: memory that must not be read held NaN, and the result is NaN."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gemmlab.verify.elementwise import Mismatch


def nan_cause(wrong: Mismatch, contents: Mapping[str, NDArray[np.float32]]) -> str | None:
    """Name the operands that held nothing but NaN before the call, if NaN is what came out; `None` otherwise.

    `contents` are the operands before the call (`Op.fill`): all NaN where the problem does not read the operand, such
    as the output of a product with `beta == 0`, or the factors with `alpha == 0` or K = 0.
    """
    if not math.isnan(wrong.value) or math.isnan(wrong.reference):
        return None
    untouched = [name for name, values in contents.items() if values.size and np.isnan(values).all()]
    if not untouched:
        return None
    if untouched == [wrong.output]:
        return f"{wrong.output} held NaN before the call, because nothing is added to it: write all of it, read none"
    names = f"{', '.join(untouched[:-1])} and {untouched[-1]}" if len(untouched) > 1 else untouched[0]
    return f"{names} held NaN before the call, because this problem makes no use of them: they must not be read"


def explained(wrong: Mismatch, contents: Mapping[str, NDArray[np.float32]]) -> str:
    """The mismatch in words, with the hint if there is one."""
    hint = nan_cause(wrong, contents)
    return f"{wrong.explain()}; {hint}" if hint else wrong.explain()
