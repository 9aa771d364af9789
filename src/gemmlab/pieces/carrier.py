"""The protocol of a device that computes a product in pieces for `piece_run`: it copies blocks in, multiplies, and
copies pieces out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gemmlab.pieces.block_sources import Block, Source
from gemmlab.pieces.route import Step


class Carrier(Protocol):
    """A device with memory for panels and pieces, in slots (`PiecePlan.rooms`).

    Its functions may return before their work is done. Operations on one slot take effect in the order of the calls;
    those on different slots may run at the same time. An error of earlier work is raised by a later call, at the latest
    by `finish`.
    """

    def load(self, name: str, slot: int, source: Source, block: Block, *, row: int, clear: bool) -> None:
        """Copy a block of a matrix into a slot of `"a"`, `"b"` or `"c"`, from the slot's row `row` and column 0 on.

        With `clear`, the whole slot is set to 0 first.
        """

    def multiply(self, step: Step) -> None:
        """Compute the product of the two panels of a step into its slot of C, alpha and beta applied."""

    def store(
        self, slot: int, at: tuple[int, int], target: Source, block: Block, done: Callable[[], None]
    ) -> None:  # fmt: skip
        """Copy the part of a slot of C that begins at row and column `at` into `block` of `target`, then call `done`,
        perhaps in another thread.
        """

    def finish(self) -> None:
        """Return once all work is done."""

    def close(self) -> None:
        """Free all memory, whether the work is done or not. Nothing is written to the result afterwards."""
