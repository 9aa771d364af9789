"""Cache blocks from the machine's caches, by a formula that is stated only here.

KC: an A panel of MR rows takes 3/4 of the L1 data cache: 48 KiB and MR 12 give 768. KC is at least 640, so that a
tile's overhead of some 100 cycles stays under 1 %. A dimension is cut into equal blocks of at most 4/3 of the nominal
one, so that no thin remainder is left. MC: a block of A, MC x KC, takes a quarter of L2, beside the next one and two
strips of B that are being loaded. NC: a block of B, KC x NC, is packed once and streams through L2 once for each block
of A; it takes 4 MiB (of L3).

Crowded rows: addresses that differ by a multiple of L1's size / ways fall into one set. Rows of A at such a distance
evict each other if the tile has more rows than L1 has ways: 12 rows with the 8 ways of 32 KiB, but not with the 12 ways
of 48 KiB. So do rows at almost such a distance, if as many rows as there are ways lie within the width of one line.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.microkernel import Tile

B_BLOCK_BYTES = 4 << 20
_LEAST_KC = 640
_LINE = 16
"""Floats in a cache line."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Nominal sizes of cache blocks, in elements: a block of A is MC x KC, a block of B is KC x NC."""

    mc: int
    kc: int
    nc: int
    crowd_period: int = 0
    """Rows of A are crowded if their distance is a multiple of this many floats, or nearly so (`crowd_slack`). It is a
    power of two, or 0 if rows count as crowded at no distance: also if L1's size / ways is no power of two.
    """
    crowd_slack: int = 0
    """Distances that are at most this many floats from the multiple count as crowded, too."""

    @property
    def kc_max(self) -> int:
        """The most steps of k in a block when k is cut into equal blocks."""
        return self.kc * 4 // 3 + 16


def cache_blocks(tile: Tile, l1d_bytes: int, l1d_ways: int, l2_bytes: int) -> Blocks:
    """Return the sizes of blocks for a register tile and a core's private caches."""
    kc = max(_LEAST_KC, l1d_bytes * 3 // 4 // (4 * tile.rows) // 16 * 16)
    mc = max(1, l2_bytes // 4 // (4 * kc) // tile.rows) * tile.rows
    nc = max(1, B_BLOCK_BYTES // (4 * kc) // tile.cols) * tile.cols
    period = l1d_bytes // (4 * l1d_ways)
    if tile.rows <= l1d_ways or period & (period - 1):
        return Blocks(mc, kc, nc)
    return Blocks(mc, kc, nc, period, _LINE // l1d_ways)
