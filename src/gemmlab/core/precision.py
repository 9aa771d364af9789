"""Float32 and TF32: the constants of error bounds, and the precisions that a product may have."""

from __future__ import annotations

UNIT_ROUNDOFF = 2.0**-24
"""Largest relative error of one rounding to nearest, in float32."""
SMALLEST_NORMAL = 2.0**-126
"""Smallest normal float32. Smaller numbers have fewer bits, or none where subnormals are flushed to zero."""
LARGEST = (2.0 - 2.0**-23) * 2.0**127
OVERFLOW = (2.0 - 2.0**-24) * 2.0**127
"""Magnitudes from here on round to infinity."""
FLOAT_BYTES = 4

FLOAT32 = "float32"
"""IEEE float32: inputs as they are, every operation rounded to float32 (a fused multiply-add once)."""
TF32 = "tf32"
"""Inputs rounded to ten bits behind the point with float32's exponents; products exact, sums truncated to float32."""
PRECISIONS = (FLOAT32, TF32)
"""All precisions, the highest first."""

TF32_ROUNDOFF = 2.0**-11
"""Largest relative error of rounding a normal number to TF32, to nearest."""
TF32_HALF_SUBNORMAL = 2.0**-137
"""Largest absolute error of rounding a subnormal number to TF32."""
TF32_OVERFLOW = (2.0 - 2.0**-11) * 2.0**127
"""Magnitudes from here on round to infinity."""
