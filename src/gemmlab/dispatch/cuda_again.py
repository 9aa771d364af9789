"""The same call again: what was checked and chosen for two matrices of one package is kept by their layouts.

Checking views, finding the GPU and choosing a kernel take longer than to launch it. Of a product into fresh memory all
that follows from layouts alone, so that a second call needs addresses, a result and the stream.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from gemmlab.devices.packages import LEGACY_STREAM, Package, package_of
from gemmlab.dispatch.cuda_gemm import CudaGemm, Plan

_MOST_KNOWN = 4096
_ALIGNED = 15
"""Bits of an address that say whether it lies on 16 bytes, which a choice depends on."""


@dataclass(frozen=True, slots=True)
class _Known:
    package: Package
    gemm: CudaGemm
    plan: Plan
    shape: tuple[int, int]


_known: dict[tuple[Hashable, ...], _Known] = {}
_packages: dict[type, Package] = {}
"""Of the arrays that came so far."""


def again(
    a: Any, b: Any, alpha: Any, beta: Any, trans_a: Any, trans_b: Any, precision: Any, kernel: Any
) -> Any:  # fmt: skip
    """The product of two matrices in fresh memory, or `None` for a call that has to be looked at first."""
    package = _packages.get(type(a))
    plain = type(alpha) is float is type(beta) and type(trans_a) is bool is type(trans_b) and not beta
    if package is None or type(b) is not type(a) or not plain or type(precision) is not str or not _is_name(kernel):
        return None
    try:
        left, right = package.address(a), package.address(b)
        ends = (left & _ALIGNED, right & _ALIGNED)
        known = _known.get((package.layout(a), package.layout(b), *ends, trans_a, trans_b, precision, kernel))
    except Exception:  # noqa: BLE001 - whatever a package says of an array without strides or memory, such as a sparse one
        return None
    if known is None or not known.gemm.device.is_current:
        return None
    module = sys.modules[package.name]
    result, address = package.empty(module, a, known.shape)
    known.plan.enqueue(package.stream(module, a) or LEGACY_STREAM, alpha, left, right, 0.0, address)
    return result


def remember(
    a: Any, b: Any, trans_a: object, trans_b: object, precision: str, kernel: object, *, gemm: CudaGemm, plan: Plan,
    shape: tuple[int, ...],
) -> None:  # fmt: skip
    """Keep what was found for two matrices whose product went into fresh memory, where it holds for others alike."""
    package = package_of(a)
    if package is None or type(a) is not type(b) or len(shape) != 2 or not plan.free or not _is_name(kernel):
        return
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    ends = (package.address(a) & _ALIGNED, package.address(b) & _ALIGNED)
    key = (package.layout(a), package.layout(b), *ends, bool(trans_a), bool(trans_b), precision, kernel)
    _known[key] = _Known(package, gemm, plan, (shape[0], shape[1]))
    _packages[type(a)] = package


def _is_name(kernel: object) -> bool:
    return kernel is None or type(kernel) is str
