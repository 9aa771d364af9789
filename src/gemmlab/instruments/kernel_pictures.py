"""Pictures of a kernel, drawn from its addresses and its code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.tracing import small_problem
from gemmlab.ops.catalog import find_op
from gemmlab.plots.pictures.catalog import pictures_for
from gemmlab.plots.pictures.drawing import Picture, Subject


def drawn(
    kernel: Kernel, arch: str, config: Mapping[str, int], sizes: str, names: Sequence[str] = ()
) -> tuple[Picture, ...]:
    """Draw the pictures of a kernel in `names`, by default all that apply.

    `sizes` is the text of one size; if it is empty, each picture chooses a small one. Raises `UsageError` for an
    unknown name, a picture that does not apply, and a size that the kernel does not take.
    """
    op = find_op(kernel.op)
    problem = small_problem(kernel, op, kernel.configure(config), sizes) if sizes else None
    return pictures_for(Subject(kernel, arch, config, problem), names)
