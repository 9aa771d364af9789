"""Layer norm of each row, with one scale g and one shift b for all elements."""

import numpy as np

from gemmlab import Array, Operation

EPS = 1e-5


def bound(x, g, b, k, u):
    away = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((away**2).mean(axis=-1, keepdims=True) + EPS)
    mean_error = (np.log2(k) + 8) * u * np.abs(x).mean(axis=-1, keepdims=True)
    off = (mean_error + (np.log2(k) + 16) * u * np.abs(away)) / deviation
    return (off + np.abs(away) * mean_error / deviation**2) * abs(g) + 4 * u * abs(b)


def reference(x, g, b):
    away = x - x.mean(axis=-1, keepdims=True)
    return away / np.sqrt((away**2).mean(axis=-1, keepdims=True) + EPS) * g + b


operation = Operation(
    name="layer_norm_scalars",
    extents=("n", "k"),
    arrays=(Array("x", ("n", "k")), Array("y", ("n", "k"), role="out")),
    scalars={"g": 1.5, "b": 0.25},
    reference=reference,
    bound=bound,
    shapes=((1, 512), (3, 512), (64, 512), (5, 256), (17, 256)),
    flops=lambda n, k: 7 * n * k,
    count="64x512",
)
