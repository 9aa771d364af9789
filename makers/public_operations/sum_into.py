"""The sum of all numbers, added to y."""

import numpy as np

from gemmlab import Array, Operation


def sum_into(name, decode, *, bound=None, **stated):
    """State the sum over `decode` of every number."""
    return Operation(
        name=name,
        extents=("s", "k"),
        arrays=(
            Array("a", ("s", "k"), **stated),
            Array("y", (1,), role="inout", fill=lambda _, shape: np.zeros(shape)),
        ),
        reference=lambda a: decode(a).sum().reshape(1),
        bound=bound or (lambda a, u: np.abs(decode(a)).sum().reshape(1) * u * 64),
        shapes=((2, 256), (1, 256), (16, 512), (5, 1024)),
        flops=lambda s, k: s * k,
        count="64x256",
    )


operation = sum_into("sum_into", lambda a: a)
