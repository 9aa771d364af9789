"""Records of small runs on a GPU, each made for a claim: their names and makers, and figures computed from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BLOCK_TO_SM = ("h200/block-to-sm.json", "gemmlab-block-to-sm/1", "block_to_sm.py")
COMPILER_OPTIONS = ("h200/compiler-options.json", "gemmlab-compiler-options/1", "compiler_options.py")
STREAMS = ("h200/streams.json", "gemmlab-streams/1", "streams.py")
SASS_VARIANTS = ("h200/sass-variants.json", "gemmlab-sass-variants/1", "sass_variants.py")
"""A record's name, its schema, and the script in makers/ that makes it."""
FAST_MATH_OFF, FAST_MATH_ON = "warp_tile_double_buffer", "warp_tile_double_buffer, fast math"
TWO_BLOCKS, ONE_BLOCK = "maxas_256", "maxas_256, one block an SM"
AT_128, PAST_128 = "maxas_256, 128 registers", "maxas_256, 255 registers"
"""Rows of the record of compiler options."""


def in_first_wave(run: Mapping[str, Any]) -> float:
    """Return the share of the blocks with the lowest numbers, as many as fit on the GPU, that were also the first to
    start.
    """
    resident = int(run["resident"])
    earliest = sorted(range(len(run["start"])), key=lambda block: (run["start"][block], block))[:resident]
    return sum(block < resident for block in earliest) / resident


def same_place(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the share of the blocks that were on the same SM in two launches, among those that did not
    fit at first.
    """
    later = range(one["resident"], len(one["sm"]))
    return sum(bool(one["sm"][block] == other["sm"][block]) for block in later) / len(later)
