"""RMS norm: each row divided by the root of the mean of its squares, times one scale g for all elements."""

import numpy as np

from gemmlab import Array, Operation

EPS = 1e-5
operation = Operation(
    name="rms_norm",
    extents=("n", "k"),
    arrays=(Array("x", ("n", "k")), Array("y", ("n", "k"), role="out")),
    scalars={"g": 1.5},
    reference=lambda x, g: x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPS) * g,
    bound=lambda y, k, u: (np.log2(k) + 16) * u * np.abs(y),
    shapes=((1, 512), (3, 512), (64, 512), (5, 256), (17, 256)),
    flops=lambda n, k: 4 * n * k,
    count="64x512",
)
