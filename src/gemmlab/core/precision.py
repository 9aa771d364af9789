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
F16X3 = "f16x3"
"""Inputs as two float16 parts of 11 bits each, scaled by powers of two; three of four products of parts are added."""
BF16X6 = "bf16x6"
"""Inputs as three bfloat16 parts, which have all bits; the six largest of nine products of parts are added."""
BF16X9 = "bf16x9"
"""Inputs as three bfloat16 parts, which have all bits; all nine products of parts are added."""
TF32X3 = "tf32x3"
"""Inputs as two TF32 parts of 11 bits each; three of four products of parts are added."""
BY_TILE = "by_tile"
"""Float16 parts, bfloat16 parts or float32 itself: for each tile the cheapest that can represent the operands."""
BF16X3 = "bf16x3"
"""Inputs as two bfloat16 parts, together 16 bits; three of four products of parts are added."""
PRECISIONS = (FLOAT32, BF16X9, BF16X6, TF32X3, BY_TILE, F16X3, BF16X3, TF32)
"""All precisions, the highest first."""
PRODUCTS = {BF16X9: 9, BF16X6: 6, TF32X3: 3, BY_TILE: 3, F16X3: 3}
"""The least number of products of parts that replace one product, by precision. Errors are no larger than those of
float32's own chain of multiply-adds.
"""
PARTS = tuple(PRODUCTS)
"""The precisions that compute with parts, the highest first."""
AS_FLOAT32 = (FLOAT32, *PARTS)
"""Precisions with errors of float32: their speeds are compared with those of float32 libraries."""

BF16X3_ROUNDOFF = 2.0**-14
"""Largest relative error of a product of two parts each: 2^-16 for each operand, 2^-16 for the product that is left
out.
"""
TF32_ROUNDOFF = 2.0**-11
"""Largest relative error of rounding a normal number to TF32, to nearest."""
TF32_HALF_SUBNORMAL = 2.0**-137
"""Largest absolute error of rounding a subnormal number to TF32."""
TF32_OVERFLOW = (2.0 - 2.0**-11) * 2.0**127
"""Magnitudes from here on round to infinity."""
