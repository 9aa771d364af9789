"""The precisions that a product may have, and the constants of error bounds of float32 and TF32."""

from __future__ import annotations

UNIT_ROUNDOFF = 2.0**-24
"""Largest relative error of rounding to the nearest normal float32."""
SMALLEST_NORMAL = 2.0**-126
"""Smallest normal float32. Smaller numbers have fewer bits, or none where subnormals are flushed to zero."""
LARGEST = (2.0 - 2.0**-23) * 2.0**127
OVERFLOW = (2.0 - 2.0**-24) * 2.0**127
"""Magnitudes from here on round to infinity in float32."""
FLOAT_BYTES = 4

FLOAT32 = "float32"
"""IEEE float32: inputs are used as they are; every operation is rounded to float32, a fused multiply-add once."""
TF32 = "tf32"
"""Inputs are rounded to ten bits behind the point with float32's exponents; products are exact, sums are truncated to
float32.
"""
F16X3 = "f16x3"
"""An input is split into two float16 parts of 11 bits each, scaled by powers of two. Of the four products of the parts
of two inputs, the three largest are added.
"""
BF16X6 = "bf16x6"
"""An input is split into three bfloat16 parts, which have all its bits. Of the nine products of parts, the six largest
are added.
"""
BF16X9 = "bf16x9"
"""An input is split into three bfloat16 parts, which have all its bits. All nine products of parts are added."""
TF32X3 = "tf32x3"
"""An input is split into two TF32 parts of 11 bits each. Of the four products of parts, the three largest are added."""
BY_TILE = "by_tile"
"""Each tile is computed by the cheapest of float16 parts, bfloat16 parts and float32 that represents its operands."""
BF16X3 = "bf16x3"
"""An input is split into two bfloat16 parts, together 16 bits. Of the four products, the three largest are added."""
PRECISIONS = (FLOAT32, BF16X9, BF16X6, TF32X3, BY_TILE, F16X3, BF16X3, TF32)
"""All precisions, the highest first."""
PRODUCTS = {BF16X9: 9, BF16X6: 6, TF32X3: 3, BY_TILE: 3, F16X3: 3}
"""Precision -> the fewest products of parts by which it replaces one product of float32 numbers.

These are the precisions, besides float32, whose errors are comparable to those of a chain of float32 multiply-adds:
smaller for long sums, larger for some short ones and where all terms are equal, as in products of constant matrices.
"""
PARTS = tuple(PRODUCTS)
"""The precisions in `PRODUCTS`, the highest first."""
AS_FLOAT32 = (FLOAT32, *PARTS)
"""Precisions with errors comparable to float32's: their speeds are compared with peer libraries in float32."""


def comparable_precision(precision: str) -> str:
    """Return the precision of the peer libraries compared with a kernel of `precision`: float32 for `AS_FLOAT32`."""
    return FLOAT32 if precision in AS_FLOAT32 else precision


BF16X3_ROUNDOFF = 2.0**-14
"""Bound of the relative error of a BF16X3 product: 2^-16 for each operand, and 2^-16 for the product left out, make
less than this.
"""
TF32_ROUNDOFF = 2.0**-11
"""Largest relative error of rounding a normal number to the nearest TF32 number."""
TF32_HALF_SUBNORMAL = 2.0**-137
"""Largest absolute error of rounding a subnormal number to TF32."""
TF32_OVERFLOW = (2.0 - 2.0**-11) * 2.0**127
"""Magnitudes from here on round to infinity in TF32."""
