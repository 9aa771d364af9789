"""Numbers rounded to TF32."""

from activations import SHAPES
from product_of_tf32 import to_tf32

from gemmlab import Array, Operation

operation = Operation(
    name="rounded_to_tf32",
    extents=("s", "k"),
    arrays=(Array("x", ("s", "k")), Array("y", ("s", "k"), role="out")),
    reference=to_tf32,
    scales=(1.0, 1024.0),
    shapes=SHAPES,
    count="64x256",
)
