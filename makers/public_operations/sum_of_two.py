"""The elementwise sum of two matrices."""

import numpy as np
from activations import SHAPES

from gemmlab import Array, Operation

operation = Operation(
    name="sum_of_two",
    extents=("s", "k"),
    arrays=(Array("a", ("s", "k")), Array("b", ("s", "k")), Array("c", ("s", "k"), role="out")),
    reference=lambda a, b: a + b,
    bound=lambda c, u: u * np.abs(c),
    shapes=SHAPES,
    count="64x256",
)
