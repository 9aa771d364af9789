"""Options of a rewritten loop, each of which was timed by itself (`makers/peak_loop/variants.py`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    """Options of a rewritten loop; the defaults are the basic form."""

    loads: tuple[int, ...] = (4, 16, 28, 40, 52, 64)
    """Numbers of a step's FFMAs before which the loads of the next step's fragments are placed."""
    last_loads: tuple[int, ...] = (14, 26, 38, 50, 62, 74)
    """As `loads`, for the last step of an iteration. Its loads read the next stage, after the barrier of the block."""
    by_columns: bool = False
    """Order FFMAs back and forth along columns, not rows."""
    wrong_bank: bool = False
    """Put every sum into the bank that the plan of registers otherwise avoids, which causes bank conflicts."""
    no_copies: bool = False
    """Leave out copies of registers that the loop does not change; read the sources instead."""
    no_idle: bool = False
    """Leave out the compiler's instructions that never execute."""
    halves: bool = False
    """Wait for three of a step's six loads before its first FFMA, and for the rest before the first FFMA of row 4."""


NEAR = (1, 14, 27, 40, 53, 66)
"""`Variant.loads` with the first load right at the start of a step."""
FASTEST = Variant(NEAR, no_copies=True, no_idle=True, halves=True)
"""The fastest variant on an H200."""
