"""In what precision a product is computed: what is done to its inputs before they are multiplied."""

from __future__ import annotations

FLOAT32 = "float32"
"""IEEE float32: inputs as they are, every operation rounded to float32 (a fused multiply-add once)."""
TF32 = "tf32"
"""Inputs rounded to ten bits behind the point with float32's exponents; products exact, sums cut off to float32."""
PRECISIONS = (FLOAT32, TF32)
"""The highest first."""

TF32_ROUNDOFF = 2.0**-11
"""Largest relative error of rounding a normal number to TF32, to nearest."""
TF32_HALF_SUBNORMAL = 2.0**-137
"""Largest error of rounding a subnormal one."""
TF32_OVERFLOW = (2.0 - 2.0**-11) * 2.0**127
"""Magnitudes from here on round to infinity."""
