"""What float32 can and cannot hold: the constants that error bounds are made of."""

from __future__ import annotations

UNIT_ROUNDOFF = 2.0**-24
"""Largest relative error of one rounding to nearest."""
SMALLEST_NORMAL = 2.0**-126
"""Below it precision is lost step by step, or at once where subnormals are flushed to zero."""
LARGEST = (2.0 - 2.0**-23) * 2.0**127
OVERFLOW = (2.0 - 2.0**-24) * 2.0**127
"""Magnitudes from here on round to infinity."""
FLOAT_BYTES = 4
