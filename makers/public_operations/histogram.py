"""Histogram: the number of times that each of the numbers 0 to 39 occurs, added to y."""

import numpy as np

from gemmlab import Array, Operation

BINS = 40
operation = Operation(
    name="histogram",
    extents=("n",),
    arrays=(
        Array("a", ("n",), type="int32", fill=lambda rng, shape: rng.integers(0, BINS, shape)),
        Array("y", (BINS,), type="int32", role="inout", fill=lambda _, shape: np.zeros(shape)),
    ),
    reference=lambda a: np.bincount(a.astype(int), minlength=BINS),
    shapes=((4,), (256,), (1000,), (4096,)),
    flops=lambda n: n,
    count="4096",
)
