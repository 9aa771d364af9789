"""A missing fence behind the initialisation of mbarriers: fence.mbarrier_init leaves no machine code, so the PTX tells.

Copies complete bytes of an mbarrier through the asynchronous proxy. It sees the initialisation only behind
fence.mbarrier_init or a proxy fence.
"""

from __future__ import annotations

import re

from gemmlab.core.hazard import Hazard
from gemmlab.emulator.ptx_hazard import hazard_at
from gemmlab.sass.gmma_lines import body_of

_INIT = "mbarrier.init"
_USE = ".mbarrier::complete_tx::bytes"
_FENCES = ("fence.mbarrier_init", "fence.proxy.async")
_CALL = re.compile(r"^\s*(?:@!?%\w+\s+)?call\b")


def unfenced_mbarriers(ptx: str, function: str, kernel: str) -> tuple[Hazard, ...]:
    """Return a hazard if a function initialises mbarriers that copies use, without a fence in the text behind it.

    A function that calls others is not looked at: they may have the fence.
    """
    lines = list(body_of(ptx, function))
    inits = [number for number, text in lines if _INIT in text]
    uses = [number for number, text in lines if _USE in text]
    fences = [number for number, text in lines if any(fence in text for fence in _FENCES)]
    calls = any(_CALL.search(text) for _, text in lines)
    if not inits or not uses or calls or any(number > inits[0] for number in fences):
        return ()
    message = "a copy uses an mbarrier with neither fence.mbarrier_init nor fence.proxy.async behind its initialisation"
    return (hazard_at("mbarrier", kernel, ptx, uses[0], inits[0], message),)
