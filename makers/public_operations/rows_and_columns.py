"""The numbers of row and column, stored in the first four columns of four rows."""

import numpy as np

from gemmlab import Array, Operation


def reference(a, b):
    a[:, :4], b[:, :4] = np.arange(4)[:, None], np.arange(4)
    return {"a": a, "b": b}


operation = Operation(
    name="rows_and_columns",
    extents=("row",),
    arrays=(Array("a", (4, "row"), role="inout"), Array("b", (4, "row"), role="inout")),
    reference=reference,
    shapes=((4,), (5,), (12,)),
)
