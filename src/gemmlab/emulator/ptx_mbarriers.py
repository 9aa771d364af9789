"""A missing fence after the initialisation of mbarriers, found in PTX: fence.mbarrier_init leaves no machine code.

Copies complete bytes of an mbarrier through the asynchronous proxy, which sees the initialisation only after
fence.mbarrier_init or a proxy fence.
"""

from __future__ import annotations

import re

from gemmlab.core.hazard import Hazard
from gemmlab.emulator.ptx_flow import flow_of
from gemmlab.emulator.ptx_hazard import hazard_at

_INIT = "mbarrier.init"
_USE = ".mbarrier::complete_tx::bytes"
_FENCES = ("fence.mbarrier_init", "fence.proxy.async")
_CALL = re.compile(r"^\s*(?:@!?%\w+\s+)?call\b")


def unfenced_mbarriers(ptx: str, function: str, kernel: str) -> tuple[Hazard, ...]:
    """Return one hazard if a function initialises mbarriers, has copies that complete bytes of mbarriers, and no fence
    follows the first initialisation in the text; else nothing.

    If the function calls others, the result is empty: they may have the fence.
    """
    statements = flow_of(ptx, function)
    inits = [index for index, each in enumerate(statements) if _INIT in each.text]
    uses = [each for each in statements if _USE in each.text]
    fences = [index for index, each in enumerate(statements) if any(fence in each.text for fence in _FENCES)]
    calls = any(_CALL.search(each.text) for each in statements)
    if not inits or not uses or calls or any(index > inits[0] for index in fences):
        return ()
    message = "a copy uses an mbarrier with neither fence.mbarrier_init nor fence.proxy.async behind its initialisation"
    return (hazard_at("mbarrier", kernel, ptx, uses[0].number, statements[inits[0]].number, message),)
