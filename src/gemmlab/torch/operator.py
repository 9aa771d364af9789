"""The operator `gemmlab::gemm`: its schema, its computation, and the shape of its result for fake and meta tensors,
which have no memory.

The same functions check operands with memory and without, so that tracing a program raises the same errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch.autograd import forward_ad

from gemmlab.api import gemm
from gemmlab.core.argument_checks import dtype_error, float32_scalar
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from gemmlab.core.precision import FLOAT32
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.precision_rule import HIGHEST, precision_for
from gemmlab.dispatch.request import Operand, request
from gemmlab.dispatch.shadows import packed

_DEVICES = ("cpu", "cuda", "meta")


def _product(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    precision: str = HIGHEST,
) -> torch.Tensor:
    shape = _checked(a, b, c, alpha, beta, trans_a, trans_b, precision)
    left, right = _plain(a), _plain(b)
    options: dict[str, Any] = {"alpha": alpha, "trans_a": trans_a, "trans_b": trans_b, "precision": precision}
    addend = None if c is None or float32_scalar(beta) == 0 else _plain(c)
    if a.is_cuda:
        added = addend.expand(shape) if addend is not None and addend.ndim == 0 else addend
        product: torch.Tensor = gemm(left, right, beta=beta, c=added, **options)
        return product
    result = torch.empty(shape, dtype=torch.float32, device=a.device)
    if addend is not None:
        result.copy_(addend)
    out = result
    if a.ndim > 2 and b.ndim == 2 and not trans_a:
        # The rows of all matrices as one tall matrix: one product instead of many, as in `gemm` on a GPU.
        left, out = left.flatten(0, -2), out.flatten(0, -2)
    # NumPy's views of the same memory take the fastest path through `gemm`.
    out = out.numpy()
    options["threads"] = torch.get_num_threads()
    gemm(left.numpy(), right.numpy(), beta=beta, c=None if addend is None else out, out=out, **options)
    return result


def _plain(x: torch.Tensor) -> torch.Tensor:
    """Return a plain tensor without a gradient, which exports its memory; torch handles gradients itself."""
    return x if type(x) is torch.Tensor and not x.requires_grad else x.detach()


def _fake(a: torch.Tensor, *others: Any, **options: Any) -> torch.Tensor:
    return a.new_empty(_checked(a, *others, **options))


def _checked(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None, alpha: float = 1.0, beta: float = 0.0,
    trans_a: bool = False, trans_b: bool = False, precision: str = HIGHEST,
) -> tuple[int, ...]:  # fmt: skip
    """Return the result's shape, or raise the errors of `gemmlab.gemm` for such operands. Extents may be symbols."""
    if forward_ad._current_level >= 0:  # noqa: SLF001 - torch has no other way to ask
        # torch would silently treat every tangent as zero.
        raise UsageError("gemm: the operator has no forward-mode derivative (torch.func.jvp, jacfwd, forward_ad)")
    device = a.device
    for name, x in (("a", a), ("b", b), ("c", c)):
        if x is None:
            continue
        if x.dtype is not torch.float32:
            raise dtype_error("gemm", name, x.dtype, "x.float()")
        if x.layout is not torch.strided:
            raise ArgumentTypeError(f"gemm: {name} has layout {x.layout}, not strided; {name}.to_dense() converts it")
        if x.device != device:
            raise DeviceError(
                f"gemm: a lies on {device}, {name} lies on {x.device}; all tensors of a call must lie on one device"
            )
    if device.type not in _DEVICES:
        raise ArgumentTypeError(f"gemm: a lies on {device}; tensors must lie on the CPU or an NVIDIA GPU")
    if precision != HIGHEST:
        precision_for(precision, (FLOAT32,))
    shape = _shape(a.shape, b.shape, trans_a, trans_b)
    if shape is None or (float32_scalar(beta) != 0 if c is None else not _broadcasts(c.shape, shape)):
        _refuse(a, b, c, alpha, beta, trans_a, trans_b)
    return shape


def _shape(a: Sequence[int], b: Sequence[int], trans_a: bool, trans_b: bool) -> tuple[int, ...] | None:
    """Return the shape of the result; `None` if the shapes do not fit."""
    if not a or not b:
        return None
    row, column = len(a) == 1, len(b) == 1
    *_, m, k = (1, *a) if row else (a[-1], a[-2]) if trans_a else a
    *_, depth, n = (*b, 1) if column else (b[-1], b[-2]) if trans_b else b
    if k != depth:
        return None
    batch: Sequence[int] = ()
    if len(a) > 2 or len(b) > 2:
        try:
            batch = torch.broadcast_shapes(a[:-2], b[:-2])
        except RuntimeError:
            return None
    return (*batch, *(() if row else (m,)), *(() if column else (n,)))


def _broadcasts(shape: Sequence[int], to: Sequence[int]) -> bool:
    # Compare symbols with each other first: comparing them with 1 would fix their values.
    pairs = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(extent in (full, 1) for extent, full in pairs)


def _refuse(
    a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, alpha: float, beta: float, trans_a: bool, trans_b: bool
) -> NoReturn:
    """Raise the error of `gemmlab.gemm` for arrays of these shapes, with numbers in place of symbols."""
    request(Call(a, b, c, None, alpha, beta, trans_a, trans_b), _of_that_shape)
    raise AssertionError("gemm: fitting shapes were refused")


def _of_that_shape(_call: str, _name: str, value: Any) -> Operand:
    return Operand(packed(tuple(int(extent) for extent in value.shape)))


if not hasattr(torch.library, "register_autocast"):
    raise ImportError(f"gemmlab.torch needs torch 2.7 or newer; this is {torch.__version__}")

GEMM = torch.library.custom_op(
    "gemmlab::gemm",
    _product,
    mutates_args=(),
    schema="(Tensor a, Tensor b, Tensor? c=None, *, float alpha=1.0, float beta=0.0, bool trans_a=False, "
    "bool trans_b=False, str precision='highest') -> Tensor",
)
GEMM.register_fake(_fake)
