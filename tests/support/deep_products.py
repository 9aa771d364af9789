"""Products on a GPU with more workspace than every stream has."""

from __future__ import annotations

from typing import Any

import numpy as np

from gemmlab.dispatch.scratch import Needs
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm_problem import GemmProblem
from support.gemm_on_gpu import uniform

DEEP_A, DEEP_B = uniform(70, 3000), uniform(3000, 150)
DEEP: dict[str, Any] = {"kernel": "split_k", "config": {"SPLITS": 16}}
"""A call with such a workspace."""


def needs(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], call: dict[str, Any]) -> Needs:
    """Return the scratch memory of a call that names kernel and configuration."""
    kernel = find_kernel(call["kernel"])
    problem = GemmProblem(a.shape[0], b.shape[1], a.shape[1])
    config = kernel.configure(call["config"])
    return Needs(kernel.workspace_bytes(problem, config), kernel.tickets(problem, config))
