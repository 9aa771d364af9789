"""Choices of a written loop, each of which was timed apart (`makers/peak_loop/variants.py`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    loads: tuple[int, ...] = (4, 16, 28, 40, 52, 64)
    """FFMAs of a step before each load of the next step's fragments."""
    last_loads: tuple[int, ...] = (14, 26, 38, 50, 62, 74)
    """The same in the last step, which begins with the barrier."""
    by_columns: bool = False
    """FFMAs go back and forth along columns, not rows."""
    wrong_bank: bool = False
    """Every sum lies in the bank of its column's fragment."""
    no_copies: bool = False
    """Without copies of a register that stays as it is."""
    no_idle: bool = False
    """Without the compiler's instructions that never execute."""
    halves: bool = False
    """The first rows' fragments are waited for, and four rows later the rest."""


NEAR = (1, 14, 27, 40, 53, 66)
FASTEST = Variant(NEAR, no_copies=True, no_idle=True, halves=True)
"""The fastest on an H200."""
