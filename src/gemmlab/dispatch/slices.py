"""Slices of k for kernels that store converted operands in a workspace, one slice at a time.

A long slice needs a large workspace, so C may have to be computed in regions (`regions.py`), each of which converts
its rows of A and columns of B anew. With short slices C is read and written more often. The length is the one with the
fewest bytes moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.dispatch.regions import Regions, regions_of, workspace_of
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm_problem import GemmProblem

SLICE = "SLICE"
"""The parameter of kernels that store converted operands: the length of a slice, in elements of k."""
_LEAST = 512
"""A slice of at most this length is not halved: shorter ones would cost too many passes over C."""
_PASS = 3 * 2 * FLOAT_BYTES
"""Cost of a slice of k, in bytes for each element of C: C is read and written while nothing is multiplied. On an H200
such a pass over C took about three times as long as its bytes alone.
"""
_CONVERTED = 10
"""Bytes read and written when an element of an operand is converted."""


class Workspace(NamedTuple):
    """The workspace of one call of `gemmlab.gemm`."""

    nbytes: int
    """Bytes for the product, or for its largest region."""
    regions: Regions | None
    """The regions of a product that is computed in several; `None` for one that is computed at once."""


def sliced(kernel: Kernel, config: Mapping[str, int], problem: GemmProblem) -> dict[str, int] | None:
    """Return the configuration with the slices of k that cost least; `None` if no workspace is small enough.

    A kernel without slices keeps its configuration.
    """
    if SLICE not in config:
        return dict(config)
    ways = list[tuple[float, int]]()
    for length in _lengths(config[SLICE]):
        regions = regions_of(kernel, {**config, SLICE: length}, problem)
        if regions is not None:
            ways.append((_cost(length, regions, problem), -length))
            if regions.count == 1:
                break
    return {**config, SLICE: -min(ways)[1]} if ways else None


def workspace_for(kernel: Kernel, config: Mapping[str, int], problem: GemmProblem) -> Workspace:
    """Return the workspace of a product in one call of `gemmlab.gemm`, and the regions in which it is computed."""
    found = regions_of(kernel, config, problem) if SLICE in config else None
    if found is None or found.count == 1:
        return Workspace(workspace_of(kernel, config, problem), None)
    return Workspace(workspace_of(kernel, config, replace(problem, m=found.rows, n=found.columns)), found)


def passed_bytes(kernel: Kernel, config: Mapping[str, int], problem: GemmProblem) -> int:
    """Return the bytes that launches of one product write for later ones, over all slices and regions; 0 without
    slices.
    """
    if SLICE not in config:
        return 0
    nbytes, regions = workspace_for(kernel, config, problem)
    return nbytes * math.ceil(problem.k / config[SLICE]) * (regions.count if regions else 1)


def _lengths(longest: int) -> Iterator[int]:
    length = longest
    while True:
        yield length
        if length <= _LEAST:
            return
        length //= 2


def _cost(length: int, regions: Regions, problem: GemmProblem) -> float:
    """Return the bytes that slices of a length and regions move, weighted."""
    converted = regions.across * problem.m + regions.down * problem.n
    return math.ceil(problem.k / length) * _PASS * problem.m * problem.n + _CONVERTED * problem.k * converted
