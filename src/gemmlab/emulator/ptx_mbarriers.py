"""A missing fence after the initialisation of mbarriers, found in PTX: fence.mbarrier_init leaves no machine code.

Copies complete bytes of an mbarrier through the asynchronous proxy, which sees the initialisation only after
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
    """Return one hazard if a function initialises mbarriers, has copies that complete bytes of mbarriers, and no fence
    follows the first initialisation in the text; else nothing.

    If the function calls others, the result is empty: they may have the fence.
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
