"""The dot product of two vectors, added to y."""

import numpy as np

from gemmlab import Array, Operation

operation = Operation(
    name="dot_product",
    extents=("s", "k"),
    arrays=(
        Array("a", ("s", "k")),
        Array("b", ("s", "k")),
        Array("y", (1,), role="inout", fill=lambda _, shape: np.zeros(shape)),
    ),
    reference=lambda a, b: np.sum(a * b, keepdims=True).reshape(1),
    # Halves are multiplied, and added up by eights or over a warp, in halves.
    bound=lambda a, b, u: np.sum(np.abs(a * b)) * u * 64,
    shapes=((2, 256), (1, 256), (16, 512), (5, 1024)),
    flops=lambda s, k: 2 * s * k,
    count="64x256",
)
