"""Counts of the bytes that a rank receives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch


@dataclass(slots=True)
class Traffic:
    """Bytes on one rank. Each call of `gemm` that gets the object adds to it.

    What torch moves is not counted: matrices with placements that only torch can change, as cuts with strides.
    """

    received: int = 0
    """Bytes that the rank received: of redistributed matrices, of panels, and of partial sums."""
    largest_buffer: int = 0
    """Most bytes that the buffers of one operand's panels, or messages of a redistribution, took at one time."""

    def hold(self, buffers: Iterable[torch.Tensor]) -> None:
        """Update `largest_buffer`; `buffers` are all buffers of one operand or redistribution that are in
        use now.
        """
        self.largest_buffer = max(self.largest_buffer, sum(each.numel() * each.element_size() for each in buffers))
