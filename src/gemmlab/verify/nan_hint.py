"""A hint at the commonest mistake: memory that must not be read held NaN, and the result is NaN."""

from __future__ import annotations

import math

import numpy as np

from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.names import names_of
from gemmlab.ops.op import Contents
from gemmlab.verify.elementwise import Mismatch

HELD_NAN = "held NaN before the call"
"""Words of each hint."""


def nan_cause(wrong: Mismatch, contents: Contents, own: Kernel | None = None) -> str | None:
    """Name the operands that held nothing but NaN before the call, if the result is NaN; `None` otherwise.

    `contents` are the operands before the call (`Op.fill`): all NaN where the problem does not read the operand, such
    as the output of a product with `beta == 0`, or the factors with `alpha == 0` or K = 0. `own`: the kernel, if it may
    say in its file's header that it reads them.
    """
    if not math.isnan(wrong.value) or math.isnan(wrong.reference):
        return None
    untouched = [name for name, values in contents.items() if values.size and np.isnan(values).all()]
    if not untouched:
        return None
    key = _key(own, untouched) if own is not None else ""
    if untouched == [wrong.output]:
        why = f"{wrong.output} {HELD_NAN}, because nothing is added to it"
        return f"{why}: write all of it, read none{key}"
    names = f"{', '.join(untouched[:-1])} and {untouched[-1]}" if len(untouched) > 1 else untouched[0]
    return f"{names} {HELD_NAN}, because this problem makes no use of them: they must not be read{key}"


def explained(wrong: Mismatch, contents: Contents) -> str:
    """The mismatch in words, with the hint if there is one."""
    hint = nan_cause(wrong, contents)
    return f"{wrong.explain()}; {hint}" if hint else wrong.explain()


def _key(kernel: Kernel, untouched: list[str]) -> str:
    """Return the key of the header that says that a kernel reads these operands; empty if there is none for them."""
    factors = names_of(kernel.op).factors
    if kernel.device != "cuda" or kernel.step is not None or not set(untouched) <= set(factors):
        return ""
    read = ", ".join(f'"{name.upper()}"' for name in factors if name in {*untouched, *kernel.always_reads})
    return f"; if it is meant to read {'it' if len(untouched) == 1 else 'them'}, state always_reads = [{read}]"
