"""The transposed matrix."""

from gemmlab import Array, Operation

operation = Operation(
    name="transposed",
    extents=("row", "col"),
    arrays=(Array("x", ("row", "col")), Array("y", ("col", "row"), role="out")),
    reference=lambda x: x.T,
    shapes=((1, 1), (4, 8), (32, 32), (64, 64), (64, 128), (256, 64), (65, 257), (1000, 70), (128, 128)),
    count="256x256",
)
