"""Layer norm of rows: y = (x - mean) / sqrt(variance + eps) * gamma + beta, with mean and variance of each row."""

import numpy as np

from gemmlab import Array, Operation


def reference(x, gamma, beta, eps):
    away = x - x.mean(axis=-1, keepdims=True)
    return away / np.sqrt((away**2).mean(axis=-1, keepdims=True) + eps) * gamma + beta


def bound(x, gamma, beta, eps, n, u):
    away = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((away**2).mean(axis=-1, keepdims=True) + eps)
    # The mean is off by n u of the mean magnitude; the deviation, a root of a mean of squares, by as much again.
    mean_error = (n + 2) * u * np.abs(x).mean(axis=-1, keepdims=True)
    off = (mean_error + (n + 8) * u * np.abs(away)) / deviation
    return (off + np.abs(away) * mean_error / deviation**2) * np.abs(gamma) + 2 * u * np.abs(beta)


operation = Operation(
    name="layer_norm",
    extents=("m", "n"),
    arrays=(
        Array("x", ("m", "n")),
        Array("gamma", ("n",)),
        Array("beta", ("n",)),
        Array("y", ("m", "n"), role="out"),
    ),
    scalars={"eps": 1e-5},
    reference=reference,
    bound=bound,
    scales=(1.0, 30.0),
    shapes=((1, 8), (1, 33), (3, 31), (5, 32), (17, 257), (40, 768), (2, 4096)),
    flops=lambda m, n: 7 * m * n,
    bench="8192x1024",
    count="64x1024",
)
