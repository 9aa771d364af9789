"""Sums of anything along any axes beside float64."""

import contextlib
from typing import Any

import numpy as np
from memory import extent, numbers, repeated, thread_count, watched

import gemmlab
from gemmlab.codegen.columns import column_roundings
from gemmlab.codegen.nests import nest_roundings
from gemmlab.core.errors import ArgumentTypeError, GemmlabError
from support.trials import Trials

UNIT = 2.0**-24


def test_sums(trials: Trials) -> None:
    for rng in trials:
        check_sum(rng)


def check_sum(rng: np.random.Generator) -> None:
    ndim = int(rng.integers(0, 5))
    shape = tuple(extent(rng, large=bool(rng.random() < 0.15 and ndim < 4)) for _ in range(ndim))
    if ndim == 1 and rng.random() < 0.3:
        shape = (int(rng.integers(1, 200_000)),)
    if np.prod(shape, dtype=float) > 1e6:
        return
    memory = watched(rng, numbers(rng, shape))
    x = repeated(rng, memory.view)
    axis, keepdims = _axis(rng, ndim), bool(rng.random() < 0.3)
    if rng.random() < 0.05:
        with contextlib.suppress(ArgumentTypeError):
            gemmlab.sum(np.ones(shape, str(rng.choice(["f8", "i4", ">f4"]))), axis)
            raise AssertionError("not refused")
        with contextlib.suppress(GemmlabError):
            gemmlab.sum(x, ndim)
            raise AssertionError("not refused")
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        expected = np.asarray(wide.sum(axis=axis, keepdims=keepdims))
        magnitude = np.abs(wide).sum(axis=axis, keepdims=keepdims)
    threads = thread_count(rng)
    out = watched(rng, np.zeros(expected.shape, np.float32)) if rng.random() < 0.3 else None
    options: dict[str, Any] = {"keepdims": keepdims, "threads": threads, "out": None if out is None else out.view}
    found = gemmlab.sum(x, axis, **options)
    assert out is None or found is out.view
    assert np.shape(found) == expected.shape
    memory.assert_intact(whole=True)
    if out is not None:
        out.assert_intact()
    terms = x.size // max(1, expected.size)
    with np.errstate(all="ignore"):
        bound = max(nest_roundings(terms), column_roundings()) * UNIT * magnitude + 1.5e-45
        finite = np.isfinite(expected)
        same = (np.isnan(found) & np.isnan(expected)) | (found == expected)
        right = np.where(finite, np.abs(found - expected) <= bound, same)
    assert right.all(), (x.shape, x.strides, axis, options, np.asarray(found)[~right][0], expected[~right][0])
    again = gemmlab.sum(x, axis, keepdims=keepdims, threads=int(rng.integers(1, 6)))
    assert np.array_equal(found, again, equal_nan=True)


def _axis(rng: np.random.Generator, ndim: int) -> Any:
    if ndim == 0 or rng.random() < 0.2:
        return None
    if rng.random() < 0.4:
        return int(rng.integers(-ndim, ndim))
    some = rng.permutation(ndim)[: int(rng.integers(0, ndim + 1))]
    return tuple(int(each) - (ndim if rng.random() < 0.3 else 0) for each in some)
