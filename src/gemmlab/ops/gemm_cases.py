"""The products that checks try, and their contents: edges, strides, scalars and special values of GEMM."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.ops.op import Float32Array

Matrix = npt.NDArray[np.floating[Any]]
TILES = (4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Extents of tiles: problems with these extents and multiples of them, one less and one more are tried."""
BLOCKS = (128, 256, 384, 512, 1024)
"""Extents of cache blocks, tried on one axis at a time, with one less and one more."""
_SCALARS = ((1.0, 0.0), (1.0, 1.0), (0.5, -1.0), (-1.0, 0.5), (0.75, 0.0))
_EXTRA_COLUMNS = ((1, 0, 0), (0, 3, 0), (0, 0, 5), (7, 11, 13), (211, 471, 215), (136, 128, 129))
"""Elements added to the smallest leading dimensions of a, b and c; each triple is tried with two shapes."""


def contract_cases(layouts: Iterable[str], rng: np.random.Generator, scale: str) -> Iterator[GemmProblem]:
    """Yield problems that cover the contract, once in each layout. `scale` is `"quick"` (0.1 GFLOP per layout) or
    `"full"`.
    """
    if scale not in ("quick", "full"):
        raise UsageError(f"scale {scale!r}: quick or full")
    full = scale == "full"
    for layout in layouts:
        shapes = [*_tiny(full), *_tile_edges(full, rng), *_block_edges(full), *_skinny(full)]
        for index, (m, n, k) in enumerate(shapes):
            alpha, beta = _SCALARS[index % len(_SCALARS)]
            yield GemmProblem(m, n, k, alpha, beta).with_layout(layout)
        for problem in (*_scalars(rng, full), *_contents()):
            yield problem.with_layout(layout)
        for index, extra in enumerate(_EXTRA_COLUMNS):
            alpha, beta = _SCALARS[index % len(_SCALARS)]
            for m, n, k in ((37, 41, 45), (6, 16, 8)):
                p = GemmProblem(m, n, k, alpha, beta).with_layout(layout)
                yield replace(p, lda=p.lda + extra[0], ldb=p.ldb + extra[1], ldc=p.ldc + extra[2])


def _tiny(full: bool) -> Iterator[tuple[int, int, int]]:
    yield from itertools.product((0, 1, 2, 3, 5) if full else (0, 1, 3), repeat=3)


def _tile_edges(full: bool, rng: np.random.Generator) -> Iterator[tuple[int, int, int]]:
    for tile in TILES:
        near = (tile - 1, tile, tile + 1)
        if full:
            yield from itertools.product(near, repeat=3)
            double, triple = 2 * tile, 3 * tile
            yield from itertools.product((double - 1, double + 1), (triple - 1, triple + 1), (tile, double + 1))
        else:
            yield (tile, tile, tile)
            yield (tile + 1, tile - 1, tile + 1)
            yield (tile - 1, tile + 1, tile - 1)
            m, n, k = (int(tile * rng.integers(1, 3) + rng.integers(-1, 2)) for _ in range(3))
            yield (m, n, k)


def _block_edges(full: bool) -> Iterator[tuple[int, int, int]]:
    for block in (*BLOCKS, 768, 2048, 4096) if full else BLOCKS:
        for extent in (block - 1, block, block + 1):
            yield (extent, 17, 19)
            yield (13, extent, 23)
            yield (15, 33, extent)
    yield (7, 3073, 5)
    yield (129, 130, 131)
    yield (321, 333, 401)
    if full:
        yield from ((193, 257, 385), (481, 321, 769), (255, 1025, 300), (1000, 1000, 1000))


def _skinny(full: bool) -> Iterator[tuple[int, int, int]]:
    long = 2053 if full else 517
    yield from itertools.permutations((1, 1, long))
    yield from ((1, long, 129), (long, 1, 131), (129, 131, 1), (2, long, 67), (long, 2, 65), (67, 65, 2))
    yield from ((16, long, 33), (4, 4, 4 * long))


def _scalars(rng: np.random.Generator, full: bool) -> Iterator[GemmProblem]:
    values = [0.0, 1.0, -1.0, 0.5, float(rng.normal())]
    if full:
        values += [1e-3, 300.0]
    for alpha, beta in itertools.product(values, repeat=2):
        yield GemmProblem(33, 35, 31, alpha, beta)
    for beta in (*values, float("nan")):
        yield GemmProblem(19, 21, 0, 1.0, beta)
    nan = float("nan")
    yield from (GemmProblem(18, 17, 16, alpha, beta) for alpha, beta in ((nan, 0.0), (1.0, nan), (0.0, nan)))
    yield GemmProblem(18, 17, 16, -0.0, -0.0)


def _contents() -> Iterator[GemmProblem]:
    for contents in ("wide", "special", "subnormal", "huge"):
        for (m, n, k), (alpha, beta) in zip(
            ((37, 41, 29), (64, 64, 64), (5, 70, 12), (70, 5, 33)), _SCALARS, strict=False
        ):
            yield GemmProblem(m, n, k, alpha, beta, contents=contents)


def operand_contents(problem: GemmProblem, rng: np.random.Generator) -> dict[str, Float32Array]:
    """Return new random a, b, c in their stored shapes (rows, cols), of the kind `problem.contents`, not all zero."""
    p = problem
    a, b, c = (_uniform(rng, rows, cols) for rows, cols in ((p.m, p.k), (p.k, p.n), (p.m, p.n)))
    match p.contents:
        case "wide":
            a, b, c = (np.ldexp(array, rng.integers(-30, 31, array.shape)) for array in (a, b, c))
        case "special":
            put_specials(p, a, b, c, rng)
        case "subnormal":
            # If inputs were flushed to zero, products of ordinary size would be lost.
            a *= np.float32(1e-39)
            b *= np.float32(1e38)
        case "huge":
            a *= np.float32(1e18)
            b *= np.float32(1e18)
            c *= np.float32(1e37)
            # One row and one column of one sign: their product is infinite in any order of summation.
            a[:1] = np.abs(a[:1]) * np.float32(1e12)
            b[:, :1] = np.abs(b[:, :1]) * np.float32(1e12)
    stored = {"a": a.T if p.trans_a else a, "b": b.T if p.trans_b else b, "c": c}
    return {name: np.ascontiguousarray(array) for name, array in stored.items()}


def put_specials(problem: GemmProblem, a: Matrix, b: Matrix, c: Matrix, rng: np.random.Generator) -> None:
    """Put NaN, infinities and zeros into a few rows of op(A) and C and a few columns of op(B), in place.

    `a` and `b` are op(A) and op(B), not as stored. Some infinities meet zeros of the other operand.
    """
    p = problem
    _sprinkle(a, rng, axis=0)
    _sprinkle(b, rng, axis=1)
    _sprinkle(c, rng, axis=0)
    if a.size and b.size:
        # An infinity of one side is multiplied by a zero of the other: NaN, unless an implementation skips zeros.
        (i, j), (p0, p1) = (int(rng.integers(extent)) for extent in (p.m, p.n)), rng.integers(p.k, size=2)
        a[i, p0], b[p0, j] = np.inf, 0.0
        a[(i + 1) % p.m, p1], b[p1, (j + 1) % p.n] = 0.0, -np.inf


def _uniform(rng: np.random.Generator, rows: int, cols: int) -> Float32Array:
    return rng.random((rows, cols), dtype=np.float32) * np.float32(2) - np.float32(1)


def _sprinkle(array: Matrix, rng: np.random.Generator, axis: int) -> None:
    # A few rows (axis 0) or columns get special values, so that most results stay finite and are compared.
    specials: Sequence[float] = (np.nan, np.inf, -np.inf, 0.0, -0.0)
    lines = array if axis == 0 else array.T
    for value in specials:
        if lines.size:
            row = int(rng.integers(lines.shape[0]))
            lines[row, int(rng.integers(lines.shape[1]))] = value
