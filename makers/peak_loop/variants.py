"""Variants of the written loop."""

from __future__ import annotations

from collections.abc import Mapping
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


_NEAR, _WIDE = (1, 14, 27, 40, 53, 66), (1, 17, 33, 49, 65, 81)
VARIANTS: Mapping[str, Variant] = {
    "anti": Variant(wrong_bank=True),
    "mid": Variant(),
    "midcols": Variant(by_columns=True),
    "lean": Variant(no_copies=True),
    "lean2": Variant(no_copies=True, no_idle=True),
    "near": Variant(_NEAR),
    "nearidle": Variant(_NEAR, no_idle=True),
    "nearlean": Variant(_NEAR, no_copies=True),
    "split": Variant(_NEAR, no_copies=True, no_idle=True, halves=True),
    "wide": Variant(_WIDE, (5, 21, 37, 53, 69, 85), no_idle=True, halves=True),
}
