"""Slices of k for kernels that store converted operands in a workspace, one slice at a time: the longest within a
limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem

SLICE = "SLICE"
"""The parameter of such kernels: the length of a slice, in elements of k."""
MOST_BYTES = 512 << 20
"""The largest workspace of a library call, in bytes."""
_LEAST = 512
"""A slice of at most this length is not halved: shorter ones would cost too many passes over C."""


def sliced(kernel: str, config: Mapping[str, int], problem: GemmProblem) -> dict[str, int] | None:
    """Return the configuration with slices of k that keep the workspace within `MOST_BYTES`; `None` if none does.

    A kernel without slices keeps its configuration.
    """
    found = dict(config)
    if SLICE not in found:
        return found
    while workspace_bytes(kernel, found, problem) > MOST_BYTES:
        if found[SLICE] <= _LEAST:
            return None
        found[SLICE] //= 2
    return found


def passed_bytes(kernel: str, config: Mapping[str, int], problem: GemmProblem) -> int:
    """Return the bytes that launches of one product write for later ones, over all slices; 0 without slices."""
    if SLICE not in config:
        return 0
    return workspace_bytes(kernel, config, problem) * math.ceil(problem.k / config[SLICE])


def workspace_bytes(kernel: str, config: Mapping[str, int], problem: GemmProblem) -> int:
    """Return the bytes of workspace that a kernel of the catalog, named by its id, needs for a product."""
    return workspace_bytes_of(find_kernel(kernel), config, problem)


def workspace_bytes_of(kernel: Kernel, config: Mapping[str, int], problem: GemmProblem) -> int:
    """Return the bytes of workspace that a kernel needs for a product."""
    scalars: Mapping[str, Any] = GemmOp().scalars(problem)
    return kernel.workspace_bytes(problem, kernel.instantiate(config, scalars))
