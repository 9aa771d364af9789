"""A matrix times a vector."""

import numpy as np

from gemmlab import Array, Operation

operation = Operation(
    name="vector_product",
    extents=("m", "k"),
    arrays=(Array("a", ("m", "k")), Array("x", ("k",)), Array("y", ("m",), role="out")),
    reference=lambda a, x: a @ x,
    bound=lambda a, x, k, u: (k // 32 + 8) * u * (np.abs(a) @ np.abs(x)),
    shapes=((1, 16), (5, 16), (33, 16), (1, 128), (5, 256), (33, 128), (64, 512), (7, 96), (16, 32)),
    flops=lambda m, k: 2 * m * k,
    count="256x128",
)
