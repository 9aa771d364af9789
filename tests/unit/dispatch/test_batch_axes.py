"""Leading axes of batches as launches take them: few, and never more blocks than a grid has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from gemmlab.dispatch import batch_axes
from gemmlab.dispatch.batch_axes import Axis, axes_of, offsets, parts
from gemmlab.dispatch.batches import ONE, Batch


def batch(a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...], *extents: int) -> Batch:
    """A batch of matrices of one element with these steps in bytes; nobody reads them."""
    room = np.zeros(1, np.float32)
    shape = (*extents, 1, 1)
    lefts, rights, fulls = (np.lib.stride_tricks.as_strided(room, shape, (*steps, 4, 4)) for steps in (a, b, c))
    return Batch(lefts, rights, fulls)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (batch((), (), ()), ()),
        (batch((8,), (4,), (0,), 1), ()),
        (batch((24, 8), (12, 4), (48, 16), 2, 3), ((6, 8, 4, 16),)),
        (batch((24, 8), (0, 0), (48, 16), 2, 3), ((6, 8, 0, 16),)),
        (batch((0, 8), (12, 4), (48, 16), 2, 3), ((2, 0, 12, 48), (3, 8, 4, 16))),
        (batch((24, 99, 8), (12, 99, 4), (48, 99, 16), 2, 1, 3), ((6, 8, 4, 16),)),
        (batch((-24, -8), (12, 4), (48, 16), 2, 3), ((6, -8, 4, 16),)),
        (batch((48, 24, 8), (24, 12, 4), (99, 48, 16), 2, 2, 3), ((2, 48, 24, 99), (6, 8, 4, 16))),
    ],
)
def test_axes_that_go_on_evenly_are_one(given: Batch, found: tuple[Axis, ...]) -> None:
    assert axes_of(given) == found


def places(axes: tuple[Axis, ...], tiles: int) -> Iterator[tuple[int, int, int]]:
    """Yield the offsets of all products of all launches."""
    for part in parts(axes, tiles):
        assert len(part.axes) <= 4
        assert part.products * tiles <= batch_axes.MOST_BLOCKS
        for start in part.starts:
            yield from ((start[0] + a, start[1] + b, start[2] + c) for a, b, c in offsets(part.axes))


AXES = ((2, 1000, 0, 1), (3, 100, 7, 10), (2, 30, 50, 200), (5, 3, 11, 2000), (7, 1, -1, 50_000))


@pytest.mark.parametrize(
    ("most", "tiles", "launches"),
    [(2**31 - 1, 1, 2), (100, 1, 6), (69, 1, 12), (34, 1, 60), (7, 1, 60), (6, 1, 120), (6, 2, 180), (14, 3, 120)],
)
def test_every_product_is_in_one_launch(monkeypatch: pytest.MonkeyPatch, most: int, tiles: int, launches: int) -> None:
    monkeypatch.setattr(batch_axes, "MOST_BLOCKS", most)
    assert sorted(places(AXES, tiles)) == sorted(offsets(AXES))
    assert sum(len(part.starts) for part in parts(AXES, tiles)) == launches


def test_one_axis_is_cut_in_equal_pieces_and_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_axes, "MOST_BLOCKS", 9)
    first, rest = parts(((11, 4, 0, 8),), 2)
    assert (first.axes, first.starts) == (((4, 4, 0, 8),), ((0, 0, 0), (16, 0, 32)))
    assert (rest.axes, rest.starts) == (((3, 4, 0, 8),), ((32, 0, 64),))
    assert parts(((8, 4, 0, 8),), 2)[0].starts == first.starts


def test_a_single_product_has_no_axes() -> None:
    (part,) = parts((), 5)
    assert (part.axes, part.starts, part.products) == ((), ONE, 1)
