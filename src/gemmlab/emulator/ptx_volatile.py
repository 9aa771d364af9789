"""Volatile and atomic loads of shared memory, which machine code does not tell from plain ones: from PTX."""

from __future__ import annotations

import re

import numpy as np

from gemmlab.emulator.image import Image
from gemmlab.emulator.instruction_layout import Insn
from gemmlab.sass.gmma_lines import body_of
from gemmlab.toolchain.ptxas_log import place_in_source

_LOAD = re.compile(r"\bld\.(?:volatile|relaxed|acquire|mmio)\b(?!\S*\.(?:global|const|local|param)\b)")


def mark_volatile(image: Image, ptx: str) -> Image:
    """Mark the loads (LDS) of a kernel whose lines load volatile in its PTX; return the image."""
    lines = {place_in_source(ptx, number) for number, text in body_of(ptx, image.function.name) if _LOAD.search(text)}
    for index, instruction in enumerate(image.code.instructions if lines else ()):
        if instruction.opcode == "LDS" and instruction.line in lines:
            image.code.records[index, Insn.STRONG : Insn.STRONG + 4].view(np.int32)[0] = 1
    return image
