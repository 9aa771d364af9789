"""Placements with which `torch.ops.gemmlab.gemm` runs on DTensors; torch redistributes operands with other ones."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding

import gemmlab.torch  # noqa: F401 - defines the operator

MATRIX = 2
"""Number of dimensions of a matrix. Operands with more, stacks of matrices, must be replicated."""


def register() -> None:
    """Register `shardings` with torch for the operator."""
    register_sharding(torch.ops.gemmlab.gemm.default)(shardings)


def shardings(
    a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 0.0, trans_a: bool = False,
    trans_b: bool = False, precision: str = "highest",
) -> list[tuple[list[Any], list[Any]]]:  # fmt: skip
    """Return pairs (placement of the result, placements of a, b and, if given, c that give it without messages)."""
    del alpha, precision
    found = [([Replicate()], [Replicate(), Replicate(), Replicate()])]
    if all(len(x.shape) == MATRIX for x in (a, b, *([] if c is None else [c]))):
        rows, depth_of_a = Shard(int(trans_a)), Shard(int(not trans_a))
        columns, depth_of_b = Shard(int(not trans_b)), Shard(int(trans_b))
        if c is None or c.shape[0] > 1:
            found.append(([Shard(0)], [rows, Replicate(), Shard(0)]))
        if c is None or c.shape[1] > 1:
            found.append(([Shard(1)], [Replicate(), columns, Shard(1)]))
        if c is None or beta == 0.0:
            # Each rank multiplies its part of k; the result is a sum over ranks.
            found.append(([Partial()], [depth_of_a, depth_of_b, Replicate()]))
    operands = 2 if c is None else 3
    return [(out, places[:operands]) for out, places in found]
