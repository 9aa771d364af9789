"""Embedding: the rows of a table that an array of row numbers names."""

from gemmlab import Array, Operation

ROWS = 50
operation = Operation(
    name="embedding",
    extents=("n", "emb_size"),
    arrays=(
        Array("idx", ("n",), type="int32", fill=lambda rng, shape: rng.integers(0, ROWS, shape)),
        Array("weight", (ROWS, "emb_size")),
        Array("output", ("n", "emb_size"), role="out"),
    ),
    reference=lambda idx, weight: weight[idx.astype(int)],
    shapes=((1, 8), (3, 256), (70, 512), (5, 1024)),
    count="64x256",
)
