"""Sums of rows: y[i] = x[i, 0] + x[i, 1] + ... + x[i, n - 1]."""

import numpy as np

from gemmlab import Array, Operation

operation = Operation(
    name="row_sums",
    extents=("m", "n"),
    arrays=(Array("x", ("m", "n")), Array("y", ("m",), role="out")),
    reference=lambda x: x.sum(axis=-1),
    # n additions of float32 numbers round at most n times (Higham, section 4.2).
    bound=lambda x, n, u: n * u * np.abs(x).sum(axis=-1),
    shapes=((1, 1), (1, 33), (3, 31), (5, 32), (17, 257), (70, 1000), (2, 4096)),
    bench="4096x4096",
    count="64x4096",
)
