"""Cache blocks from the machine's caches, by a formula that is stated here and nowhere else.

KC: an A panel of MR rows takes 3/4 of the L1 data cache. 48 KiB and MR 12 give 768. A dimension is cut into
    equal blocks of at most 4/3 of the nominal one, so that no thin rest is left.
MC: a block of A, MC x KC, takes a quarter of L2, beside the next one and two strips of B that are on their way.
NC: a block of B, KC x NC, is packed once and streams through L2 once for each block of A; it takes 4 MiB (of L3).
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.microkernel import Tile

B_BLOCK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Blocks:
    """Cache blocks in elements: A is MC x KC, B is KC x NC; `kc_max` bounds a block that was grown."""

    mc: int
    kc: int
    nc: int

    @property
    def kc_max(self) -> int:
        """The longest k-block that the even cut can give."""
        return self.kc * 4 // 3 + 16


def cache_blocks(tile: Tile, l1d_bytes: int, l2_bytes: int) -> Blocks:
    """The blocks for a register tile and a core's private caches."""
    kc = max(64, l1d_bytes * 3 // 4 // (4 * tile.rows) // 16 * 16)
    mc = max(1, l2_bytes // 4 // (4 * kc) // tile.rows) * tile.rows
    nc = max(1, B_BLOCK_BYTES // (4 * kc) // tile.cols) * tile.cols
    return Blocks(mc, kc, nc)
