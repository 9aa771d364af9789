"""Non-maximum suppression: 1 for each box that is kept, 0 for each that overlaps a kept one before it too much.

Boxes come in the order of their scores. Corners are whole numbers, so that areas are exact.
"""

import numpy as np

from gemmlab import Array, Operation


def boxes(rng, shape):
    """Return random boxes: two corners each, the lower one first."""
    low = rng.integers(0, 40, (shape[0], 2))
    return np.hstack((low, low + rng.integers(1, 20, (shape[0], 2))))


def kept(boxes, iou_threshold):
    low, high = boxes[:, :2], boxes[:, 2:]
    sides = np.maximum(np.minimum(high[:, None], high) - np.maximum(low[:, None], low), 0)
    common, area = sides.prod(axis=-1), (high - low).prod(axis=-1)
    overlap = common / (area[:, None] + area - common)
    keep = np.zeros(len(boxes))
    for n in range(len(boxes)):
        keep[n] = not np.any(keep[:n] * (overlap[n, :n] > iou_threshold))
    return keep


operation = Operation(
    name="kept_boxes",
    extents=("num_boxes",),
    arrays=(
        Array("boxes", ("num_boxes", 4), fill=boxes),
        Array("scores", ("num_boxes",)),
        Array("keep", ("num_boxes",), type="int32", role="out"),
    ),
    scalars={"iou_threshold": 0.5},
    reference=kept,
    shapes=((1,), (5,), (32,), (70,), (300,)),
    flops=lambda num_boxes: 10 * num_boxes * num_boxes,
    count="300",
)
