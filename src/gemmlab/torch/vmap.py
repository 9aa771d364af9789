"""The rule of `torch.func.vmap` for the operator: the mapped axis becomes the first of the leading axes."""

from __future__ import annotations

from typing import Any

import torch


def vmap(
    info: Any,
    in_dims: tuple[int | None, ...],
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None = None,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    **options: Any,
) -> tuple[torch.Tensor, int]:
    """Return the result, and the position of its mapped axis, which is 0. `in_dims` are those of a, b and c, `None` for
    a tensor without a mapped axis.
    """
    a_axis, b_axis, c_axis = (*in_dims, None)[:3]
    row, column = _axes(a, a_axis) == 1, _axes(b, b_axis) == 1
    rank = max(2, _axes(a, a_axis), _axes(b, b_axis))
    if a_axis is None is b_axis:
        # Only c has the new axis. The result's shape comes from a and b, so one of them is expanded along it.
        a, a_axis = a.expand(info.batch_size, *a.shape), 0
    left, right = _first(a, a_axis), _first(b, b_axis)
    left = _spread(left.unsqueeze(-2) if row else left, a_axis, rank)
    right = _spread(right.unsqueeze(-1) if column else right, b_axis, rank)
    if c is not None:
        c = _spread(torch.atleast_1d(_first(c, c_axis)), c_axis, rank - row - column)
        c = c.unsqueeze(-1) if column else c
        c = c.unsqueeze(-2) if row else c
    result = torch.ops.gemmlab.gemm.default(
        left, right, c, trans_a=trans_a and not row, trans_b=trans_b and not column, **options
    )
    result = result.squeeze(-2) if row else result
    return (result.squeeze(-1) if column else result), 0


def _axes(x: torch.Tensor, axis: int | None) -> int:
    return int(x.ndim - (axis is not None))


def _first(x: torch.Tensor, axis: int | None) -> torch.Tensor:
    return x if axis is None else x.movedim(axis, 0)


def _spread(x: torch.Tensor, axis: int | None, rank: int) -> torch.Tensor:
    """Insert axes of extent 1 after the mapped one, so that there are `rank` others. If `axis` is `None`, `x` has no
    mapped axis and is returned unchanged.
    """
    return x if axis is None else x[(slice(None), *(None,) * (rank + 1 - x.ndim))]
