"""Fences between the generic and the asynchronous proxy."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.table import opcode


@opcode("FENCE")
def fence(x: Form) -> None:
    """Order the lane's accesses before those of the asynchronous proxy."""
    x.allow("VIEW", "ASYNC", "S", "G", "T")
