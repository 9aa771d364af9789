"""Softmax of rows: y[i, j] = exp(x[i, j] - max of row i) / sum of these over row i."""

import numpy as np

from gemmlab import Array, Operation


def reference(x):
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


operation = Operation(
    name="softmax",
    extents=("m", "n"),
    arrays=(Array("x", ("m", "n")), Array("y", ("m", "n"), role="out")),
    reference=reference,
    # The rounded difference gives the exponential an error of |x - max| u; exp adds two u, the sum n u.
    bound=lambda x, y, n, u: (n + 8 + 2 * np.abs(x - x.max(axis=-1, keepdims=True))) * u * y,
    # If a kernel does not subtract the maximum, exp(100) overflows.
    scales=(1.0, 100.0),
    shapes=((1, 1), (1, 33), (3, 31), (5, 32), (17, 257), (40, 1000), (2, 4096)),
    flops=lambda m, n: 4 * m * n,
    bench="4096x4096",
    count="64x4096",
)
