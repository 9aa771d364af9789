"""Attention, head by head: out = softmax(q k^T / sqrt(width)) v, each of (heads, length, width)."""

import numpy as np

from gemmlab import Array, Operation


def weights(q, k, width):
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(width)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def bound(q, k, v, width, length, u):
    # The error of a score is (width + 4) u |q| |k| / sqrt(width), which is also the relative error of its exponential.
    # The sums and the product add 2 length u.
    scores = np.abs(q) @ np.abs(k).transpose(0, 2, 1) / np.sqrt(width)
    off = 2 * (width + 4) * u * scores.max(axis=-1, keepdims=True) + (2 * length + 16) * u
    return off * (weights(q, k, width) @ np.abs(v))


HEAD = ("heads", "length", "width")
operation = Operation(
    name="attention",
    extents=HEAD,
    arrays=(Array("q", HEAD), Array("k", HEAD), Array("v", HEAD), Array("out", HEAD, role="out")),
    reference=lambda q, k, v, width: weights(q, k, width) @ v,
    bound=bound,
    scales=(1.0, 4.0),
    shapes=((1, 1, 64), (1, 7, 64), (2, 32, 64), (3, 33, 64), (2, 100, 64), (1, 130, 64)),
    flops=lambda heads, length, width: 4 * heads * length * length * width,
    unit="GFLOP/s",
    bench="16x1024x64",
    count="2x64x64",
)
