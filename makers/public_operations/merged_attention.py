"""Attention over two parts of the keys, merged: each part's result is weighted by its sum of exponentials, whose
logarithm is given.
"""

import numpy as np

from gemmlab import Array, Operation

HEADS, SUMS = ("num_tokens", "num_heads", "head_size"), ("num_heads", "num_tokens")


def weights(prefix_lse, suffix_lse):
    """Return the two parts' weights, for each token and head."""
    sums = np.stack((prefix_lse, suffix_lse))
    parts = np.exp(sums - sums.max(axis=0))
    return (parts / parts.sum(axis=0)).transpose(0, 2, 1)[..., None]


def merged(prefix_output, prefix_lse, suffix_output, suffix_lse):
    prefix, suffix = weights(prefix_lse, suffix_lse)
    return {
        "output": prefix * prefix_output + suffix * suffix_output,
        "output_lse": np.logaddexp(prefix_lse, suffix_lse),
    }


def bound(prefix_output, prefix_lse, suffix_output, suffix_lse, u):
    # The differences of logarithms are rounded before their exponentials are taken.
    off = (16 + 8 * np.maximum(np.abs(prefix_lse), np.abs(suffix_lse))) * u
    return {"output": off.T[..., None] * (np.abs(prefix_output) + np.abs(suffix_output)), "output_lse": off}


operation = Operation(
    name="merged_attention",
    extents=("num_tokens", "num_heads", "head_size"),
    arrays=(
        Array("output", HEADS, role="out"),
        Array("output_lse", SUMS, role="out"),
        Array("prefix_output", HEADS),
        Array("prefix_lse", SUMS),
        Array("suffix_output", HEADS),
        Array("suffix_lse", SUMS),
    ),
    reference=merged,
    bound=bound,
    scales=(1.0, 8.0),
    shapes=((1, 1, 4), (3, 2, 64), (17, 4, 32), (5, 16, 128)),
    flops=lambda num_tokens, num_heads, head_size: 3 * num_tokens * num_heads * head_size,
    count="16x4x64",
)
