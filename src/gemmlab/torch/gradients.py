"""Gradients of the operator's tensors. They are computed by the operator itself, so they have gradients, too.

With L = op(a), R = op(b) and G the gradient of the result, L has the gradient alpha * G R^T and R has alpha * L^T G; if
op transposes an operand, its gradient is the transpose of this. Each gradient is one call, whose flags transpose its
operands.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from gemmlab.core.argument_checks import float32_scalar


def setup_context(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: torch.Tensor) -> None:
    """Save the operands that the requested gradients will read."""
    del output
    a, b, c = inputs
    need_a, need_b = ctx.needs_input_grad[:2]
    ctx.save_for_backward(a if need_b else None, b if need_a else None)
    ctx.shapes = a.shape, b.shape, None if c is None else c.shape
    ctx.options = keyword_only_inputs


def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """Return the gradients of a, b and c; `None` in place of one that is not requested."""
    # torch leaves out arguments that equal their defaults, so the third may be missing.
    need_a, need_b, need_c = (*ctx.needs_input_grad, False)[:3]
    (a, b), (a_shape, b_shape, c_shape) = ctx.saved_tensors, ctx.shapes
    beta = float32_scalar(ctx.options["beta"])
    row, column = len(a_shape) == 1, len(b_shape) == 1
    trans_a, trans_b = ctx.options["trans_a"] and not row, ctx.options["trans_b"] and not column
    scale = {"alpha": ctx.options["alpha"], "precision": ctx.options["precision"]}
    gemm = torch.ops.gemmlab.gemm.default
    of_c = None
    if need_c:
        of_c = grad.sum_to_size(c_shape) * beta if beta else grad.new_zeros(c_shape)

    # From here on all operands are matrices. If all of a is multiplied by one b, a is treated as one tall matrix.
    a_matrix = (1, *a_shape) if row else a_shape
    b_matrix = (*b_shape, 1) if column else b_shape
    grad = grad.unsqueeze(-1) if column else grad
    grad = grad.unsqueeze(-2) if row else grad
    a = a.reshape(a_matrix) if a is not None else None
    b = b.reshape(b_matrix) if b is not None else None
    if len(a_matrix) > 2 and len(b_matrix) == 2 and not trans_a:
        a_matrix = math.prod(a_matrix[:-1]), a_matrix[-1]
        grad = grad.reshape(a_matrix[0], grad.shape[-1])
        a = a.reshape(a_matrix) if a is not None else None
    of_a = of_b = None
    if need_a:
        if trans_a:
            of_a = gemm(b, grad, trans_a=trans_b, trans_b=True, **scale)
        else:
            of_a = gemm(grad, b, trans_b=not trans_b, **scale)
        of_a = of_a.sum_to_size(a_matrix).reshape(a_shape)
    if need_b:
        if trans_b:
            of_b = gemm(grad, a, trans_a=True, trans_b=trans_a, **scale)
        else:
            of_b = gemm(a, grad, trans_a=not trans_a, **scale)
        of_b = of_b.sum_to_size(b_matrix).reshape(b_shape)
    return of_a, of_b, of_c
