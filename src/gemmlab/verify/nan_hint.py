"""A hint at the commonest mistake: memory that must not be read held NaN, and the result is NaN."""

from __future__ import annotations

import math

import numpy as np

from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.names import names_of
from gemmlab.ops.op import Contents
from gemmlab.verify.elementwise import Mismatch

NAN_BEFORE = "held NaN before the call"
"""Words that each sentence of `nan_cause` contains."""


def nan_cause(wrong: Mismatch, contents: Contents, own: Kernel | None = None) -> str | None:
    """Return a sentence that names the operands that held only NaN before the call; `None` if there are none, or if the
    result is not NaN, or must be.

    `contents` are the operands before the call (`Op.fill`): all NaN where the problem does not read the operand, such
    as the output of a product with `beta == 0`, or the inputs with `alpha == 0` or K = 0. With the kernel `own` of a
    user's file, the sentence adds the key of the file's header that would state that the kernel reads them.
    """
    if not math.isnan(wrong.value) or math.isnan(wrong.reference):
        return None
    untouched = [name for name, values in contents.items() if values.size and np.isnan(values).all()]
    if not untouched:
        return None
    key = _key(own, untouched) if own is not None else ""
    if untouched == [wrong.output]:
        why = f"{wrong.output} {NAN_BEFORE}, because nothing is added to it"
        return f"{why}: write all of it, read none{key}"
    names = f"{', '.join(untouched[:-1])} and {untouched[-1]}" if len(untouched) > 1 else untouched[0]
    return f"{names} {NAN_BEFORE}, because this problem makes no use of them: they must not be read{key}"


def explained(wrong: Mismatch, contents: Contents) -> str:
    """Return the mismatch in words, with the sentence of `nan_cause` if there is one."""
    hint = nan_cause(wrong, contents)
    return f"{wrong.explain()}; {hint}" if hint else wrong.explain()


def _key(kernel: Kernel, untouched: list[str]) -> str:
    """Return advice to state `always_reads` in the header of the kernel's file; empty for kernels of the CPU or the
    ladder, and for operands without a factor.
    """
    factors = names_of(kernel.op).factors
    if kernel.device != "cuda" or kernel.step is not None or not set(untouched) <= set(factors):
        return ""
    read = ", ".join(f'"{name.upper()}"' for name in factors if name in {*untouched, *kernel.always_reads})
    return f"; if it is meant to read {'it' if len(untouched) == 1 else 'them'}, state always_reads = [{read}]"
