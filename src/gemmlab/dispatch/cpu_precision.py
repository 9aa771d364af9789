"""The kernel that serves a call on a CPU: by the precision that the caller requests, or by `kernel` and `config`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.precision import BF16X3, BF16X6, BF16X9, FLOAT32
from gemmlab.devices.cpu_tiles import tiles_refusal
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice_store import EVERY, machine_of_cpu, stored_choice
from gemmlab.dispatch.override import checked_config, named_kernel
from gemmlab.dispatch.precision_rule import HIGHEST, forced_precisions
from gemmlab.kernels.kernel import Kernel

_PRODUCTS = {BF16X3: 3, BF16X6: 6, BF16X9: 9}
_FASTEST = {"float32": {"PRODUCTS": 6, "EVERYWHERE": 0}}
"""Requested precision for which kernel `amx_bf16x6` is used if it is faster -> parameters of the kernel."""
FORCED = {precision: {"PRODUCTS": count, "EVERYWHERE": 1} for precision, count in _PRODUCTS.items()}
"""Requested precision that names bfloat16 parts, and so kernel `amx_bf16x6` -> parameters of the kernel."""


@dataclass(frozen=True, slots=True)
class CpuWay:
    """A kernel in a configuration, and the reason for it."""

    kernel: Kernel
    config: Mapping[str, int]
    reason: str


def cpu_way(precision: str, extents: tuple[int, int, int] | None = None) -> CpuWay:
    """Return the kernel for a requested precision; with `extents` (m, n, k), the one that computes such a product.

    For `"float32"` the AMX kernel leaves products that are too small for its tiles to the kernel of multiply-adds; with
    `extents` of such a product, the latter is returned. Raises `DeviceError` for bfloat16 parts on a processor without
    AMX tiles.
    """
    from gemmlab.kernels.gemm_cpu.threaded import KERNEL as MULTIPLY_ADDS

    refusal = tiles_refusal()
    if precision in FORCED and refusal:
        raise DeviceError(f"gemm: precision {precision!r} by amx_bf16x6 {refusal}")
    if precision not in FORCED and (precision not in _FASTEST or refusal):
        usual = "computes every shape, single rows and columns by separate loops"
        lack = f"; amx_bf16x6 {refusal}" if precision in _FASTEST else ""
        return CpuWay(MULTIPLY_ADDS, _usual(MULTIPLY_ADDS), f"the one kernel of the CPU: it {usual}{lack}")
    from gemmlab.codegen.amx.amx_product import slower
    from gemmlab.kernels.gemm_cpu.amx_bf16x6 import KERNEL as TILES

    if precision in FORCED:
        return CpuWay(TILES, TILES.configure(FORCED[precision]), "the precision names it")
    if extents is not None and slower(*extents):
        return CpuWay(MULTIPLY_ADDS, _usual(MULTIPLY_ADDS), "too small for tiles to be faster than multiply-adds")
    why = (
        "tiles are faster than multiply-adds, which compute only blocks whose parts would be subnormal, infinite or NaN"
    )
    return CpuWay(TILES, TILES.configure(_FASTEST[precision]), why)


def _usual(kernel: Kernel) -> dict[str, int]:
    """Return the configuration of a kernel that was measured on this machine, else the shipped one."""
    entry = stored_choice(machine_of_cpu(), EVERY, HIGHEST, kernel)
    return kernel.configure(None if entry is None else entry.config)


def forced_way(call: Call, extents: tuple[int, int, int]) -> CpuWay:
    """Return the kernel that the caller names; without one, that of `cpu_way`. `config` replaces its parameters.

    A kernel of bfloat16 parts that the caller names has the `PRODUCTS` of a precision that names such parts. The
    precision must be one of `forced_precisions`. Raises `ArgumentTypeError`, `UsageError` and `DeviceError`.
    """
    precision, overrides = call.precision, checked_config(call.config)
    if call.kernel is None:
        way = cpu_way(call.least_precision, extents)
        found, usual = way.kernel, dict(way.config)
    else:
        found = named_kernel(call.kernel, "cpu")
        usual = {"PRODUCTS": _PRODUCTS[precision]} if precision in found.precisions.values() else {}
    chosen = found.configure({**usual, **overrides})
    if (own := found.precision_in(chosen)) not in forced_precisions(precision):
        raise UsageError(f"gemm: {found.id} computes in {own}, and precision is {precision!r}")
    if call.reproducible and own != FLOAT32:
        raise UsageError(f"gemm: {found.id} takes other sums where other rows change, which reproducible excludes")
    return CpuWay(found, chosen, "the caller names it")
