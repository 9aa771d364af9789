"""Attention of halves as in `attention_of_halves`, with v stored by columns: (heads, 64, length)."""

import numpy as np
from attention_of_halves import HEAD, weights

from gemmlab import Array, Operation

operation = Operation(
    name="attention_by_columns",
    extents=("heads", "length"),
    arrays=(Array("q", HEAD), Array("k", HEAD), Array("v", ("heads", 64, "length")), Array("o", HEAD, role="out")),
    reference=lambda q, k, v: weights(q, k) @ v.transpose(0, 2, 1),
    bound=lambda q, k, v, u: 12 * u * (weights(q, k) @ np.abs(v).transpose(0, 2, 1)),
    shapes=((1, 64), (2, 128), (1, 192), (3, 64)),
    flops=lambda heads, length: 4 * heads * length * length * 64,
    unit="GFLOP/s",
    count="2x128",
)
