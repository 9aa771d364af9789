"""A random call of `gemmlab.gemm`, and what makes its result right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from memory import Array, Watched, extent, numbers, repeated, thread_count, watched

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, UsageError

UNIT = 2.0**-24
_TINY = 1.5e-45
_OVERFLOW = float(np.finfo(np.float32).max) * (1 + UNIT / 2)
"""What rounds to infinity in float32, from here on."""
ALPHAS = (1.0, 1.0, 1.0, 0.0, -0.0, -1.5, 0.1, 1e-42, 1e-45, 1e-60, -1e-60, 1e38, -1e39, np.nan)
BETAS = (0.0, 0.0, -0.0, 1.0, -0.5, 2.5, 1e-42, 1e-45, 1e-60, -1e-60, 1e38, np.nan, np.inf)
"""Also such as are 0 or infinite in float32, which both are rounded to."""


@dataclass
class Ranges:
    """What was drawn: for a record."""

    m: list[int] = field(default_factory=lambda: [1 << 62, 0])
    n: list[int] = field(default_factory=lambda: [1 << 62, 0])
    k: list[int] = field(default_factory=lambda: [1 << 62, 0])
    products_a_call: list[int] = field(default_factory=lambda: [1 << 62, 0])

    def add(self, **drawn: int) -> None:
        """Widen the ranges so that these numbers are in them."""
        for name, value in drawn.items():
            low, high = getattr(self, name)
            setattr(self, name, [min(low, value), max(high, value)])


def check_products(rng: np.random.Generator, ranges: Ranges | None = None, *, large: bool = False) -> int:
    """One call, checked: every element within its bound, NaN and infinite where it should be, nothing else written.

    Returns how many products of matrices were checked; a call that must be refused has none.
    """
    m, n, k = (extent(rng, large=large and rng.random() < 0.5) for _ in range(3))
    batch = _batch(rng)
    left_batch, right_batch = (_part(rng, batch) for _ in range(2))
    row, column = rng.random() < 0.05, rng.random() < 0.05
    trans_a, trans_b = (bool(rng.random() < 0.3) for _ in range(2))
    a_shape = (k,) if row else (*left_batch, *((k, m) if trans_a else (m, k)))
    b_shape = (k,) if column else (*right_batch, *((n, k) if trans_b else (k, n)))
    full = np.broadcast_shapes(a_shape[:-2], b_shape[:-2])
    shape = (*full, *(() if row else (m,)), *(() if column else (n,)))
    a, b = (watched(rng, numbers(rng, each)) for each in (a_shape, b_shape))
    x, y = repeated(rng, a.view), repeated(rng, b.view)
    alpha, beta = float(rng.choice(ALPHAS)), float(rng.choice(BETAS))
    keeps = bool(rounded(beta) != 0.0)
    out = watched(rng, numbers(rng, shape)) if rng.random() < 0.5 else None
    c = _addend(rng, shape, out, keeps=keeps)
    options: dict[str, Any] = {
        "alpha": alpha, "beta": beta, "trans_a": trans_a, "trans_b": trans_b, "threads": thread_count(rng),
        "c": c, "out": None if out is None else out.view,
    }  # fmt: skip
    if rng.random() < 0.05:
        _check_refusal(rng, x, y, options, out)
        return 0
    old = None if c is None else np.array(np.broadcast_to(c, shape), np.float64)
    result = gemmlab.gemm(x, y, **options)
    assert result.shape == shape
    assert result.dtype == np.float32
    assert out is None or result is out.view
    left = x[np.newaxis, :] if row else x.swapaxes(-1, -2) if trans_a else x
    right = y[:, np.newaxis] if column else y.swapaxes(-1, -2) if trans_b else y
    assert_product(result.reshape(*full, left.shape[-2], right.shape[-1]), left, right, alpha, beta, old)
    for operand in (a, b):
        operand.assert_intact(whole=True)
    if out is not None:
        out.assert_intact()
    elif rng.random() < 0.3:
        _check_bits(rng, x, y, options, result, full)
    count = int(np.prod(full))
    if ranges is not None:
        ranges.add(m=left.shape[-2], n=right.shape[-1], k=k, products_a_call=count)
    return count


def rounded(scalar: float) -> float:
    """The float32 value of alpha or beta, by which everything is decided."""
    with np.errstate(over="ignore"):
        return float(np.float32(scalar))


def assert_product(result: Array, a: Array, b: Array, alpha: float, beta: float, c: Array | None) -> None:
    """Whether `result` is alpha a b + beta c: within the bound where that is finite, else of the same class."""
    scale, keep, k = rounded(alpha), rounded(beta), a.shape[-1]
    with np.errstate(all="ignore"):
        product, added, magnitude = (np.zeros(result.shape) for _ in range(3))
        unsure = np.zeros(result.shape, bool)
        if scale != 0.0 and k:
            wide = [np.asarray(operand, np.float64) for operand in (a, b)]
            sums, sizes = (np.einsum("...ik,...kj->...ij", *each) for each in (wide, [*map(np.abs, wide)]))
            product, magnitude = product + scale * sums, magnitude + abs(scale) * sizes
            # An infinite alpha times what may be 0 or a rounding error of either sign.
            unsure = np.isinf(scale) & (sizes > 0) & (np.abs(sums) <= (k + 3) * UNIT * sizes + k * _TINY)
        slack = (k + 3) * UNIT * magnitude  # of the product alone: c may be infinite
        if keep != 0.0 and c is not None:
            added += keep * c.reshape(result.shape)
            magnitude += abs(added)
        bound = (k + 3) * UNIT * magnitude + (k + 2) * _TINY * max(1.0, abs(scale))
        expected = product + added
        wrong = ~(_agrees(result, product, added, bound, magnitude, slack) | (unsure & ~np.isfinite(result)))
    assert not wrong.any(), (
        f"{np.count_nonzero(wrong)} of {wrong.size} wrong, first at {tuple(map(int, np.argwhere(wrong)[0]))}: "
        f"{result[wrong][0]!r} for {expected[wrong][0]!r}; alpha {alpha}, beta {beta}, "
        f"a {a.shape} {a.strides}, b {b.shape} {b.strides}, result {result.strides}"
    )


def _agrees(result: Array, product: Array, added: Array, bound: Array, magnitude: Array, slack: Array) -> Array:
    """Elements that are `product + added` within the bound, or of its class. `slack` bounds the product's own error.

    A sum that float32 cannot hold is infinite; of two terms that it cannot hold, it may also be NaN.
    """
    expected = product + added
    finite, overflows = np.isfinite(expected), ~np.isfinite(result)
    beyond = np.abs(expected) - bound >= _OVERFLOW
    own = np.where(np.isfinite(slack), slack, 0)  # infinite where an operand is
    error = np.where(np.isfinite(bound), bound, own)
    both = (np.abs(product) + error >= _OVERFLOW) & (np.abs(added) + error >= _OVERFLOW)
    near = (np.abs(result - expected) <= bound) & ~beyond
    perhaps = (magnitude + bound >= _OVERFLOW) & ~beyond & overflows
    certainly = beyond & (result == np.copysign(np.inf, expected))
    return np.asarray(np.where(finite, near | perhaps | certainly, _same_class(result, expected)) | (both & overflows))


def _same_class(result: Array, expected: Array) -> Array:
    both_nan = np.isnan(result) & np.isnan(expected)
    return np.asarray(both_nan | (result == expected))


def _batch(rng: np.random.Generator) -> tuple[int, ...]:
    count = int(rng.choice((0, 0, 1, 1, 2, 3)))
    if count == 1 and rng.random() < 0.1:
        return (int(rng.integers(50, 400)),)
    return tuple(
        int(rng.choice((0, 1, 2, 3, 4, 7))) if rng.random() < 0.5 else int(rng.integers(1, 9)) for _ in range(count)
    )


def _part(rng: np.random.Generator, batch: tuple[int, ...]) -> tuple[int, ...]:
    """Leading axes that broadcast to these or some of them."""
    kept = batch[int(rng.integers(len(batch) + 1)) :] if rng.random() < 0.2 else batch
    return tuple(1 if rng.random() < 0.15 else each for each in kept)


def _addend(rng: np.random.Generator, shape: tuple[int, ...], out: Watched | None, *, keeps: bool) -> Array | None:
    if not keeps and rng.random() < 0.6:
        return None
    if out is not None and rng.random() < 0.6:
        if keeps:
            return out.view
        out.view[...] = np.nan
        # What is not read may overlap the result in any way.
        return out.view[..., ::-1] if out.view.ndim and rng.random() < 0.5 else out.view
    some = tuple(1 if rng.random() < 0.1 else each for each in shape[int(rng.random() < 0.1) :])
    values = np.full(some, np.nan, np.float32) if not keeps else numbers(rng, some)
    return watched(rng, values).view


def _check_bits(
    rng: np.random.Generator, a: Array, b: Array, options: dict[str, Any], result: Array, batch: tuple[int, ...]
) -> None:
    """Any number of threads makes the same bits, and a product of a stack those that it has alone."""
    again = gemmlab.gemm(a, b, **{**options, "threads": int(rng.integers(1, 6))})
    assert np.array_equal(again, result, equal_nan=True)
    assert np.array_equal(np.signbit(again), np.signbit(result) | (np.isnan(result) & np.signbit(again)))
    if batch and result.size and a.ndim > 1 and b.ndim > 1 and options["c"] is None:
        at = tuple(int(rng.integers(each)) for each in batch)
        left, right = (np.broadcast_to(x, (*batch, *x.shape[-2:]))[at] for x in (a, b))
        assert np.array_equal(gemmlab.gemm(left, right, **options), result[at], equal_nan=True), at


def _check_refusal(rng: np.random.Generator, a: Array, b: Array, options: dict[str, Any], out: Watched | None) -> None:
    """A call with one thing wrong raises, and writes nothing."""
    kind = int(rng.integers(6))
    error: type[Exception] = UsageError
    if kind == 0:
        dtype = rng.choice(["f8", ">f4", "f2", "i4", "c8", "?", "O"])
        a, error = np.ones(a.shape, str(dtype)), ArgumentTypeError
    elif kind == 1:
        b = np.ones((2 * len(b) + 1,) if b.ndim == 1 else (*b.shape[:-2], 51, 53), np.float32)
    elif kind == 2:
        options = {**options, "threads": 0}
    elif kind == 3:
        options = {**options, "c": None, "beta": float(rng.choice((1.0, 1e-45)))}
    elif kind == 4 and out is not None and out.view.size and out.view.ndim and out.view.shape[-1] > 1:
        # An addend in the place of the result, element for element another.
        options = {**options, "c": out.view[..., ::-1], "beta": float(rng.choice((1.0, 1e-45)))}
    elif out is not None and out.view.size and a.size:
        # An operand in the place of the result.
        a, error = np.lib.stride_tricks.as_strided(out.view, a.shape, (0,) * a.ndim), UsageError
    else:
        options = {**options, "trans_a": 2}
        error = ArgumentTypeError
    if out is not None:
        out = Watched(out.view, out.memory, out.memory.tobytes())
    try:
        gemmlab.gemm(a, b, **options)
    except error:
        pass
    else:
        raise AssertionError(f"not refused: kind {kind}, a {a.shape} {a.dtype}, b {b.shape}, {options}")
    if out is not None:
        out.assert_intact(whole=True)
