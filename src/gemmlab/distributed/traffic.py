"""Bytes that a rank receives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch


@dataclass(slots=True)
class Traffic:
    """A count of what one rank received of panels, over all calls that it is passed to."""

    received: int = 0
    """Bytes."""
    largest_buffer: int = 0
    """Bytes of the panels that lay in buffers at the same time, at most."""

    def hold(self, buffers: Iterable[torch.Tensor]) -> None:
        """Count the buffers that are in use now."""
        self.largest_buffer = max(self.largest_buffer, sum(each.numel() * each.element_size() for each in buffers))
