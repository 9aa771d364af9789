"""The leading axes of a batch as a kernel's launches take them: few axes, in few launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.dispatch.batches import ONE, Batch, Step
from gemmlab.ops.batch_records import AXES

MOST_BLOCKS = 2**31 - 1
"""The most blocks of a launch along x."""
Axis = tuple[int, int, int, int]
"""(extent, step of left, step of right, step of the result); steps are in bytes."""


@dataclass(frozen=True, slots=True)
class Part:
    """Launches of one shape that compute some or all of the products."""

    axes: tuple[Axis, ...]
    """The leading axes of a launch, the outermost first."""
    starts: tuple[Step, ...] = ONE
    """Bytes from the operands of the batch's first product to those of each launch's first product."""

    @property
    def products(self) -> int:
        """The number of products of one launch."""
        return math.prod(extent for extent, *_ in self.axes)

    @property
    def in_elements(self) -> list[Axis]:
        """The axes with steps in elements, for `ops.batch_records.axes_value`."""
        return [(extent, a // FLOAT_BYTES, b // FLOAT_BYTES, c // FLOAT_BYTES) for extent, a, b, c in self.axes]


def axes_of(batch: Batch) -> tuple[Axis, ...]:
    """Return the leading axes of a batch, adjacent ones joined if all operands are evenly spaced along both.

    Axes of extent 1 are left out.
    """
    found = list[Axis]()
    strides = (x.strides[:-2] for x in (batch.lefts, batch.rights, batch.fulls))
    for extent, a, b, c in zip(batch.fulls.shape[:-2], *strides, strict=True):
        if extent == 1:
            continue
        evenly = bool(found) and found[-1][1:] == (extent * a, extent * b, extent * c)
        found.append((extent * found.pop()[0] if evenly else extent, a, b, c))
    return tuple(found)


def parts(axes: Sequence[Axis], tiles: int) -> tuple[Part, ...]:
    """Return the launches for a batch with these axes. Each product has `tiles` tiles, at most `MOST_BLOCKS`.

    There is one launch if there are at most `AXES` axes and one grid can have all tiles. Else there is a launch for
    each index of the outer axes. An axis that is too long for a grid is cut in pieces, the last of which may be
    shorter.
    """
    inner = len(axes) - min(len(axes), AXES)
    while inner < len(axes) - 1 and Part(tuple(axes[inner:])).products * tiles > MOST_BLOCKS:
        inner += 1
    outer, inside = axes[:inner], tuple(axes[inner:])
    if Part(inside).products * tiles <= MOST_BLOCKS:
        return (Part(inside, offsets(outer)),)
    ((extent, *steps),) = inside
    a, b, c = steps
    most = MOST_BLOCKS // tiles
    pieces, rest = divmod(extent, most)
    whole = Part(((most, a, b, c),), offsets((*outer, (pieces, most * a, most * b, most * c))))
    if not rest:
        return (whole,)
    done = pieces * most
    behind = tuple((x + done * a, y + done * b, z + done * c) for x, y, z in offsets(outer))
    return whole, Part(((rest, a, b, c),), behind)


def offsets(axes: Sequence[Axis]) -> tuple[Step, ...]:
    """Return the byte offsets (left, right, result) of each index of the axes, in C order."""
    total = np.zeros((1, 3), np.int64)
    for extent, *steps in axes:
        along = np.arange(extent, dtype=np.int64)[:, np.newaxis] * np.array(steps, np.int64)
        total = (total[:, np.newaxis, :] + along).reshape(-1, 3)
    return tuple((a, b, c) for a, b, c in total.tolist())
