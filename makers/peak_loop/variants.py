"""Variants of the main loop that is written anew; `makers/peak_loops.py` times each of them."""

from __future__ import annotations

from collections.abc import Mapping

from gemmlab.sass.rewriting.variant import FASTEST, NEAR, Variant

_WIDE = (1, 17, 33, 49, 65, 81)
VARIANTS: Mapping[str, Variant] = {
    "anti": Variant(wrong_bank=True),
    "mid": Variant(),
    "midcols": Variant(by_columns=True),
    "lean": Variant(no_copies=True),
    "lean2": Variant(no_copies=True, no_idle=True),
    "near": Variant(NEAR),
    "nearidle": Variant(NEAR, no_idle=True),
    "nearlean": Variant(NEAR, no_copies=True),
    "split": FASTEST,
    "wide": Variant(_WIDE, (5, 21, 37, 53, 69, 85), no_idle=True, halves=True),
}
