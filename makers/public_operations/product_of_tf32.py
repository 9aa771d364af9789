"""A product of matrices of TF32 numbers, which have 11 bits of fraction: to these the host rounds A and B first."""

import numpy as np

from gemmlab import Array, Operation

BITS = 11


def to_tf32(x):
    """Return the nearest TF32 numbers; of two equally near ones, that with the larger magnitude."""
    fraction, exponent = np.frexp(np.abs(x))
    return np.copysign(np.ldexp(np.floor(fraction * 2**BITS + 0.5), exponent - BITS), x)


def fill(rng, shape):
    """Return TF32 numbers whose magnitudes differ by up to 2^16."""
    return to_tf32(rng.uniform(-1, 1, shape) * 2.0 ** rng.integers(-8, 9, shape))


operation = Operation(
    name="product_of_tf32",
    extents=("m", "n", "k"),
    arrays=(Array("a", ("m", "k"), fill=fill), Array("b", ("k", "n"), fill=fill), Array("c", ("m", "n"), role="out")),
    reference=lambda a, b: a @ b,
    # Products are exact; tensor cores truncate their sums.
    bound=lambda a, b, k, u: 2 * k * u * (np.abs(a) @ np.abs(b)),
    shapes=(
        (128, 128, 8), (128, 128, 16), (128, 256, 24), (256, 128, 32), (384, 128, 40), (128, 384, 72), (256, 256, 136),
        (128, 128, 512),
    ),
    flops=lambda m, n, k: 2 * m * n * k,
    unit="GFLOP/s",
    count="256x256x256",
)  # fmt: skip
