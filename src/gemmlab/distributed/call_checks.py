"""Checks of the arguments of `gemmlab.distributed.gemm` on one rank."""

from __future__ import annotations

import torch
from torch.distributed.tensor import DTensor

from gemmlab.core.argument_checks import float32_scalar
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.precision import PRECISIONS
from gemmlab.dispatch.precision_rule import precision_for
from gemmlab.distributed.agreement import CALL, FreePart
from gemmlab.distributed.placements import COLUMNS, OTHER, ROWS, place_in, share, words
from gemmlab.distributed.traffic import Traffic

MOST_DIMENSIONS = 2
FREE = {"a": ROWS, "b": COLUMNS}
"""The lines that the axis of each operand that is not k counts."""


def checked_factors(
    a: DTensor, b: DTensor, c: DTensor | None, alpha: float, beta: float, precision: str, traffic: Traffic | None
) -> tuple[float, float]:
    """Return alpha and beta rounded to float32. Raises `ArgumentTypeError` or `UsageError` for wrong arguments."""
    _check_operands(a, b, c)
    precision_for(precision, PRECISIONS)
    if traffic is not None and not isinstance(traffic, Traffic):
        raise ArgumentTypeError(
            f"{CALL}: traffic is {type(traffic).__qualname__}; it must be a gemmlab.distributed.Traffic"
        )
    factors = []
    for name, value in (("alpha", alpha), ("beta", beta)):
        try:
            factors.append(float32_scalar(value))
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"{CALL}: {name} is {value!r}; it must be a number") from error
    if c is None and beta != 0:
        raise UsageError(f"{CALL}: beta is {beta!r}, so c is needed")
    return factors[0], factors[1]


def _check_operands(a: DTensor, b: DTensor, c: DTensor | None) -> None:
    for name, x in (("a", a), ("b", b), *((("c", c),) if c is not None else ())):
        if not isinstance(x, DTensor):
            raise ArgumentTypeError(f"{CALL}: {name} is {type(x).__qualname__}; it must be a DTensor")
        if x.dtype != torch.float32:
            raise ArgumentTypeError(f"{CALL}: {name} is {x.dtype}; it must be torch.float32")
        if x.ndim != 2:
            raise UsageError(f"{CALL}: {name} has {x.ndim} dimensions; it must have 2")
        if x.device_mesh != a.device_mesh:
            raise UsageError(f"{CALL}: {name} lies on another mesh than a")
        if x.requires_grad:
            raise UsageError(
                f"{CALL}: {name} requires a gradient, which this call does not compute: gemmlab.torch.gemm does, or "
                f"pass {name}.detach()"
            )
    if a.device_mesh.ndim > MOST_DIMENSIONS:
        raise UsageError(f"{CALL}: the mesh has {a.device_mesh.ndim} dimensions; it may have 1 or 2")
    if a.shape[1] != b.shape[0]:
        raise UsageError(f"{CALL}: a is {_shape(a)} and b is {_shape(b)}: k differs")
    if c is not None and tuple(c.shape) != (a.shape[0], b.shape[1]):
        raise UsageError(f"{CALL}: c is {_shape(c)}; the product is {a.shape[0]}x{b.shape[1]}")
    why = None if c is None else "c is given"
    check_part("a", a, why)
    check_part("b", b, why)
    if c is not None:
        check_part("c", c, why)


def check_part(name: str, x: DTensor, why: str | None) -> None:
    """Raise `UsageError` if this rank's part of a matrix has not the extents that torch's cuts give it.

    `why` says why that holds for a's rows and b's columns too; if it is `None`, these may be cut otherwise.
    """
    mesh, part = x.device_mesh, x._local_tensor.shape  # noqa: SLF001 - `to_local` costs the host ten times as much
    layout, at = words(x.placements), place_in(mesh)
    for axis, cut in enumerate((ROWS, COLUMNS)):
        free = FREE.get(name) == cut and cut in layout
        if OTHER in layout or (free and why is None):
            continue
        extent = x.shape[axis]
        for dimension, word in enumerate(layout):
            if word == cut:
                extent = len(share(extent, mesh.size(dimension), at[dimension]))
        if part[axis] != extent:
            reason = f"; other cuts of {name}'s {cut} are not taken here, because {why}" if free else ""
            raise UsageError(
                f"{CALL}: this rank's part of {name} has {part[axis]} {cut}; it must have {extent}, as torch cuts "
                f"{x.shape[axis]} {cut}{reason}"
            )


def free_parts(a: DTensor, b: DTensor) -> list[FreePart]:
    """Return this rank's parts of a's rows and b's columns, but for an operand that torch redistributes."""
    found = []
    for axis, (name, x) in enumerate((("a", a), ("b", b))):
        layout, cut = words(x.placements), FREE[name]
        if OTHER not in layout:
            along = tuple(dimension for dimension, word in enumerate(layout) if word == cut)
            extent = x._local_tensor.shape[axis]  # noqa: SLF001 - as in `check_part`
            found.append(FreePart(name, cut, extent, x.shape[axis], along))
    return found


def _shape(x: DTensor) -> str:
    return "x".join(str(extent) for extent in x.shape)
