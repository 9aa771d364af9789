"""Attention in halves, softmax(q k^T / 8) v for each head; a head has 64 columns."""

import numpy as np

from gemmlab import Array, Operation

HEAD = ("heads", "length", 64)


def weights(q, k):
    scores = q @ k.transpose(0, 2, 1) / 8.0
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


operation = Operation(
    name="attention_of_halves",
    extents=("heads", "length"),
    arrays=(Array("q", HEAD), Array("k", HEAD), Array("v", HEAD), Array("o", HEAD, role="out")),
    reference=lambda q, k, v: weights(q, k) @ v,
    # Scores of 64 products, and weights that are halves: some ten units of the mean magnitude of v.
    bound=lambda q, k, v, u: 12 * u * (weights(q, k) @ np.abs(v)),
    shapes=((1, 64), (2, 128), (1, 192), (3, 64)),
    flops=lambda heads, length: 4 * heads * length * length * 64,
    unit="GFLOP/s",
    count="2x128",
)
