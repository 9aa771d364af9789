"""The machine code in gemmlab's package that a GPU runs for a choice."""

from __future__ import annotations

from dataclasses import replace

from gemmlab.core.errors import GemmlabError
from gemmlab.dispatch.choice_values import Choice
from gemmlab.dispatch.waves import Gpu
from gemmlab.kernels.catalog import find_kernel
from gemmlab.toolchain.build_cuda import archived

_DIGITS = 12


def with_machine_code(choice: Choice, layout: str, where: Gpu) -> Choice:
    """Return the choice with digest and compiler of the machine code that gemmlab's package has for it on a GPU.

    `layout` is `"nn"`, `"nt"`, `"tn"` or `"tt"`. The choice is unchanged if the package has no such code.
    """
    try:
        kernel = find_kernel(choice.kernel)
        flags = {name: int(of == "t") for name, of in zip(("TRANS_A", "TRANS_B"), layout, strict=True)}
        fits = (
            one
            for one in kernel.instances(kernel.configure(choice.config))
            if all(one.get(name, value) == value for name, value in flags.items())
        )
        found = archived(kernel.program(next(fits), where.limits.arch))
    except (GemmlabError, StopIteration):
        return choice
    return replace(choice, machine_code=f"{found.digest[:_DIGITS]} by {found.compiler}") if found else choice
