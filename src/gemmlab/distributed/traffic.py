"""Bytes that a rank receives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Traffic:
    """A count of what one rank received of panels, over all calls that it is passed to."""

    received: int = 0
    """Bytes."""
    largest_buffer: int = 0
    """Bytes of the panels that lay in buffers at the same time, at most."""
