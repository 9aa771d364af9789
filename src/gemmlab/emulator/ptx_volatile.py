"""Volatile loads of shared memory and relaxed arrivals, found in PTX: in machine code they look like ordinary ones."""

from __future__ import annotations

import re

import numpy as np

from gemmlab.emulator.image import Image
from gemmlab.emulator.instruction_layout import Insn, Order
from gemmlab.toolchain.ptxas_log import body_of, place_in_source

_LOAD = re.compile(r"\bld\.(?:volatile|relaxed|acquire|mmio)\b(?!\S*\.(?:global|const|local|param)\b)")

_RELAXED = re.compile(r"\bbarrier\.cluster\.arrive\S*\.relaxed\b")
_FENCE_OR_CALL = re.compile(r"\bfence\.mbarrier_init\b|^\s*(?:@!?%\w+\s+)?call\b")


def mark_volatile(image: Image, ptx: str) -> Image:
    """Set `Insn.STRONG` in some of a kernel's instructions, in place, and return the image.

    These are loads from shared memory (LDS) whose source line has a volatile, relaxed, acquire or mmio load in the PTX,
    and arrivals at the cluster's barrier whose source line has a relaxed arrival in the PTX. An arrival right after a
    fence (CGAERRBAR) is one with release, and is not marked. If any relaxed arrival has fence.mbarrier_init before it
    in the text, or a call, which may have the fence, all that are marked make initialisations of mbarriers known.
    """
    body = list(body_of(ptx, image.function.name))
    fence = next((number for number, text in body if _FENCE_OR_CALL.search(text)), None)
    for opcode, pattern in (("LDS", _LOAD), ("UCGABAR_ARV", _RELAXED)):
        places = [number for number, text in body if pattern.search(text)]
        lines = {place_in_source(ptx, number) for number in places}
        behind = opcode == "UCGABAR_ARV" and fence is not None and any(number > fence for number in places)
        before = ""
        for index, instruction in enumerate(image.code.instructions if lines else ()):
            if instruction.opcode == opcode and instruction.line in lines and before != "CGAERRBAR":
                image.code.records[index, Insn.STRONG : Insn.STRONG + 4].view(np.int32)[0] = (
                    Order.INITIALISATIONS if behind else Order.RELAXED
                )
            before = instruction.opcode
    return image
