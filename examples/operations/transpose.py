"""Transposed matrix: y[j, i] = x[i, j]. Numbers are only moved, so the results are exact."""

from gemmlab import Array, Operation

operation = Operation(
    name="transpose",
    extents=("m", "n"),
    arrays=(Array("x", ("m", "n")), Array("y", ("n", "m"), role="out")),
    reference=lambda x: x.T,
    shapes=((1, 1), (1, 33), (31, 3), (32, 32), (65, 257), (1000, 70), (4, 1027)),
    bench="4096x4096",
    count="256x256",
)
