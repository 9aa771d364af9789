"""Arrays for fuzzers: views with any strides in memory that is watched, and numbers of all classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
EXTENTS = (0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 24, 31, 32, 33, 47)
LARGE = (48, 63, 64, 65, 100, 129, 257)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-44, 1e-38)
_BAND = 16


@dataclass(frozen=True)
class Watched:
    """A view, and the memory around it as it was."""

    view: Array
    memory: npt.NDArray[np.uint8]
    before: bytes

    def assert_intact(self, *, whole: bool = False) -> None:
        """Whether memory beside the view is as it was; with `whole` the view too."""
        if not whole:
            kept = self.view.copy()
            self.view[...] = np.frombuffer(self.before, np.uint8)[_indices(self)].view(np.float32).reshape(kept.shape)
        assert self.memory.tobytes() == self.before, "memory beside the view was written"
        if not whole:
            self.view[...] = kept


def _indices(watched: Watched) -> npt.NDArray[np.int64]:
    """Places in memory of every byte of the view, in C order."""
    start = watched.view.__array_interface__["data"][0] - watched.memory.__array_interface__["data"][0]
    places = np.full((), start, np.int64)
    for extent, step in zip(watched.view.shape, watched.view.strides, strict=True):
        places = places[..., np.newaxis] + np.arange(extent) * step
    return (places[..., np.newaxis] + np.arange(4)).ravel()


def extent(rng: np.random.Generator, *, large: bool = False) -> int:
    return int(rng.choice(LARGE if large else EXTENTS))


def watched(rng: np.random.Generator, values: Array) -> Watched:
    """`values` in a view: axes in any order, any steps, gaps, unaligned now and then; NaN between and around."""
    ndim = values.ndim
    order = rng.permutation(ndim) if rng.random() < 0.4 else np.arange(ndim)
    steps = [int(rng.choice((1, 1, 1, 1, 2, 3))) for _ in range(ndim)]
    gaps = [int(rng.choice((0, 0, 0, 1, 5))) for _ in range(ndim)]
    sizes = [values.shape[axis] * steps[axis] + gaps[axis] for axis in order]
    count = int(np.prod(sizes)) if ndim else 1
    shift = int(rng.choice((0, 0, 0, 0, 4, 16, 20, 1)))
    memory = np.full((count + 2 * _BAND) * 4 + 64, 0xFF, np.uint8)
    inner = memory[_BAND * 4 + shift : _BAND * 4 + shift + count * 4].view(np.float32).reshape(sizes)
    places = tuple(slice(0, values.shape[axis] * steps[axis], steps[axis]) for axis in order)
    view = inner[places].transpose(np.argsort(order)) if ndim else inner
    # With an ellipsis, or of an array without axes there would be a number.
    turned: tuple[Any, ...] = (..., *(slice(None, None, -1 if rng.random() < 0.15 else 1) for _ in range(ndim)))
    view = view[turned]
    view[...] = values
    return Watched(view, memory, memory.tobytes())


def numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Random numbers of one scale; now and then some that are special, or all small integers."""
    kind = rng.random()
    if kind < 0.2:
        return np.asarray(rng.integers(-4, 5, shape), np.float32)
    scale = rng.choice((1.0, 1.0, 1.0, 1e-20, 1e12))
    values = np.asarray(rng.standard_normal(shape) * scale, np.float32)
    if kind > 0.85 and values.size:
        for value in rng.choice(SPECIAL, 3):
            values.flat[rng.integers(values.size)] = value
    return values


def thread_count(rng: np.random.Generator) -> int | None:
    return (None, 1, 2, 3)[int(rng.integers(4))]


def repeated(rng: np.random.Generator, values: Array) -> Array:
    """The same array or, now and then, one with an axis along which one element repeats."""
    if values.ndim and values.size and rng.random() < 0.1:
        axis = int(rng.integers(values.ndim))
        return np.broadcast_to(values.take([0], axis), values.shape)
    return values
