"""Softmax of all numbers of a vector, for numbers whose exponentials do not overflow; their sum is added to total."""

import numpy as np

from gemmlab import Array, Operation


def reference(x):
    exponentials = np.exp(x)
    return {"y": exponentials / exponentials.sum(), "total": exponentials.sum(keepdims=True)}


operation = Operation(
    name="softmax_of_all",
    extents=("n",),
    arrays=(
        Array("x", ("n",)),
        Array("y", ("n",), role="out"),
        Array("total", (1,), role="inout", fill=lambda _, shape: np.zeros(shape)),
    ),
    reference=reference,
    bound=lambda y, total, n, u: {"y": (np.log2(n) + 24) * u * y, "total": (np.log2(n) + 24) * u * total},
    shapes=((128,), (64,), (256,), (1000,), (4096,)),
    flops=lambda n: 4 * n,
    count="4096",
)
