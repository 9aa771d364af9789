"""Operations that apply a function to each number; files beside this one state one function each."""

import numpy as np

from gemmlab import Array, Operation

SHAPES = ((2, 8), (1, 256), (3, 256), (5, 512), (7, 1024))


def activation(name, function):
    """State y = function(x) for a matrix of any shape, whose rows a block may take."""
    return Operation(
        name=name,
        extents=("s", "k"),
        arrays=(Array("x", ("s", "k")), Array("y", ("s", "k"), role="out")),
        reference=function,
        # A few roundings of numbers of the size of x, y and 1, and exponentials with two units.
        bound=lambda x, y, u: u * (4 + 16 * (np.abs(x) + np.abs(y))),
        scales=(1.0, 4.0),
        shapes=SHAPES,
        count="64x256",
    )
