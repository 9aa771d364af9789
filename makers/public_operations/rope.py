"""Rotary embedding: pairs of numbers rotated by an angle that grows with the row and falls with the place in it."""

import numpy as np

from gemmlab import Array, Operation


def turned(x, seq_len, n):
    angle = np.arange(seq_len)[:, None] * 10000.0 ** (-np.arange(n) / n)
    one, two = x[:, :, 0], x[:, :, 1]
    return np.stack((one * np.cos(angle) - two * np.sin(angle), one * np.sin(angle) + two * np.cos(angle)), -1)


operation = Operation(
    name="rope",
    extents=("seq_len", "n"),
    arrays=(Array("x", ("seq_len", "n", 2)), Array("out", ("seq_len", "n", 2), role="out")),
    reference=turned,
    # The error of the angle grows with the row, because the angle is a rounded product.
    bound=lambda x, seq_len, u: (16 * seq_len + 16) * u * np.abs(x).sum(axis=-1, keepdims=True),
    shapes=((1, 256), (8, 256), (64, 128), (64, 512)),
    flops=lambda seq_len, n: 6 * seq_len * n,
    count="64x256",
)
