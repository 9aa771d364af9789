"""The matrix product as an operator of torch: `torch.ops.gemmlab.gemm`, and `gemm` here, which calls it.

Importing this module registers the operator. It has gradients of every order, runs under `torch.compile`,
`torch.export`, `torch.func.vmap` and autocast, and on the CPU and NVIDIA GPUs.
"""

from __future__ import annotations

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "gemmlab.torch needs torch: pip install 'gemmlab[torch]', or '.[torch]' in a checkout", name=error.name
    ) from error

from gemmlab.core.errors import ArgumentTypeError
from gemmlab.torch.gradients import backward, setup_context
from gemmlab.torch.operator import GEMM
from gemmlab.torch.vmap import vmap

__all__ = ["gemm"]

GEMM.register_autograd(backward, setup_context=setup_context)
GEMM.register_vmap(vmap)
for _kind in ("cpu", "cuda"):
    GEMM.register_autocast(_kind, torch.float32)


def gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    precision: str = "highest",
) -> torch.Tensor:
    """Return `alpha * op(a) @ op(b) + beta * c`, where op transposes the last two axes for `trans_a` and `trans_b`.

    `a`, `b` and `c` are float32 tensors of one device, the CPU or a GPU, with any strides. Shapes and `precision` are
    those of `gemmlab.gemm`: leading axes broadcast, a one-dimensional operand is a row on the left or a column on the
    right, and `c` broadcasts to the result, is needed if `beta` is not 0, and is not read if `beta` is 0. The result is
    a new contiguous tensor that shares memory with none of them.

    Gradients of `a`, `b` and `c` are products of the same `precision` that read transposed operands in place. `alpha`
    and `beta` are numbers without gradients. Under autocast, operands of lower precision are converted to float32
    first. `torch.set_num_threads` bounds the threads used on the CPU.

    Raises `ArgumentTypeError` (a TypeError) for operands that are no tensors or have another dtype, device or layout,
    `UsageError` (a ValueError) for shapes that do not fit, a `beta` without `c`, an unknown `precision` and
    forward-mode derivatives, `DeviceError` for tensors of several devices, and torch's own errors for other arguments
    of a wrong type. Under `torch.compile` these texts are part of torch's error.
    """
    for name, x in (("a", a), ("b", b), ("c", c)):
        if not isinstance(x, torch.Tensor) and (x is not None or name != "c"):
            raise ArgumentTypeError(f"gemm: {name} is {type(x).__module__}.{type(x).__qualname__}, not a torch.Tensor")
    result: torch.Tensor = torch.ops.gemmlab.gemm.default(
        a, b, c, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b, precision=precision
    )
    return result
