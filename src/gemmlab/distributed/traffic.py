"""Counts of the bytes that a rank receives as panels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch


@dataclass(slots=True)
class Traffic:
    """Bytes of panels on one rank, over all calls of `gemm` that the object is passed to."""

    received: int = 0
    """Bytes that the rank received."""
    largest_buffer: int = 0
    """Most bytes that the buffers of one operand's panels took at one time."""

    def hold(self, buffers: Iterable[torch.Tensor]) -> None:
        """Update `largest_buffer`; `buffers` are all buffers of one operand that are in use now."""
        self.largest_buffer = max(self.largest_buffer, sum(each.numel() * each.element_size() for each in buffers))
