"""The contestants of `triton_beside.py` on a GPU: gemmlab, torch and Triton, on torch's arrays and gemmlab's stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import gemmlab
from gemmlab.core.errors import PeerError
from gemmlab.devices.cuda import CudaDevice
from gemmlab.timing.contestants.gpu_arrays import TorchArrays

Call = Callable[[Any, Any, Any], object]
"""A function `(a, b, c)` that enqueues C = A B."""
DATA = ("normal", "uniform in 0 .. 1")
UNIT = 2.0**24
"""The number of units of error in 1."""
GROUP = 8
"""The number of rows of tiles in a strip; Triton's programs go through C strip by strip."""
TILES = (
    (128, 128, 32, 3, 8), (128, 128, 32, 2, 8), (128, 128, 64, 2, 8), (128, 256, 32, 3, 8), (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4), (64, 64, 32, 4, 4), (64, 64, 64, 3, 4),
)  # fmt: skip
"""Configurations of Triton's kernel: BM, BN, BK, stages, warps."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """One contestant: its calls by configuration, of which the fastest at a size takes turns there."""

    name: str
    ways: Mapping[str, Call]
    facts: Mapping[str, Any] = field(default_factory=dict)


class Field(Protocol):
    """Contestants with the operands of one size, and the clock."""

    @property
    def contestants(self) -> Sequence[Contestant]:
        """All contestants, in the order of the record."""

    def device(self) -> dict[str, Any]:
        """Return the device's description for the record."""

    def prepare(self, n: int) -> None:
        """Make the operands of an n x n x n product for each kind of data."""

    def time(self, call: Call, repeats: int) -> list[float]:
        """Return the microseconds of each of `repeats` calls with cold caches, on normal data."""

    def errors(self, call: Call) -> dict[str, list[float]]:
        """Return for each kind of data the largest error of a call and the root mean square of its errors, in units of
        2^-24 |A| |B|.
        """


class GpuField:
    """The field on the first GPU. Raises `DeviceError` without one, `PeerError` without torch or Triton."""

    def __init__(self) -> None:
        self._device = CudaDevice(0, "cold")
        for name in ("torch", "triton"):
            if find_spec(name) is None:
                raise PeerError(f"{name} is not installed here: pip install {name}")
        arrays = TorchArrays(self._device)
        self._torch = arrays.torch
        self._torch.backends.cuda.matmul.allow_tf32 = False
        self._generator = self._torch.Generator(device="cuda").manual_seed(7)
        self._operands: dict[str, tuple[Any, Any]] = {}
        self._c: Any = None
        self.contestants = [*gemmlab_ways(), torch_way(self._torch), *triton_ways()]

    def device(self) -> dict[str, Any]:
        return asdict(self._device.describe())

    def prepare(self, n: int) -> None:
        make = {DATA[0]: self._torch.randn, DATA[1]: self._torch.rand}
        self._operands.clear()
        self._c = None
        for data in DATA:
            x, y = (make[data](n, n, device="cuda", generator=self._generator) for _ in "ab")
            self._operands[data] = x, y
        self._c = self._torch.empty(n, n, device="cuda")

    def time(self, call: Call, repeats: int) -> list[float]:
        return self._device.time_enqueued(partial(call, *self._operands[DATA[0]], self._c), repeats)

    def errors(self, call: Call) -> dict[str, list[float]]:
        found = {}
        for data, (a, b) in self._operands.items():
            self._c.fill_(float("nan"))
            call(a, b, self._c)
            error = (self._c.double() - a.double() @ b.double()).abs() / (a.abs().double() @ b.abs().double()) * UNIT
            found[data] = [float(error.max()), float(error.square().mean().sqrt())]
        return found


def gemmlab_ways() -> list[Contestant]:
    """Return contestants that call the library as a user does, with `precision=` and `out=`."""

    def way(precision: str) -> Call:
        return lambda a, b, c: gemmlab.gemm(a, b, precision=precision, out=c)

    return [
        Contestant(
            f"gemmlab:{one}", {f'precision="{one}"': way(one)}, {"library": "gemmlab", "version": version("gemmlab")}
        )
        for one in ("float32", "f16x3", "bf16x6")
    ]


def torch_way(torch: Any) -> Contestant:
    """Return the contestant `torch.mm`, which is cuBLAS in float32."""
    facts = {"library": "torch", "version": version("torch")}
    return Contestant("torch", {"torch.mm": lambda a, b, c: torch.mm(a, b, out=c)}, facts)


def triton_ways() -> list[Contestant]:
    """Return the contestants that run Triton's kernel: with TF32 parts by `tl.dot`, and with bfloat16 parts by `tl.dot`
    or made in the kernel.
    """
    module = import_module("triton_product")
    facts = {"library": "triton", "version": version("triton")}

    def way(precision: str, tile: tuple[int, int, int, int, int]) -> Call:
        bm, bn, bk, stages, warps = tile

        def call(a: Any, b: Any, c: Any) -> None:
            m, n, k = a.shape[0], b.shape[1], a.shape[1]
            module.KERNEL[(m // bm * (n // bn),)](
                a, b, c, m, n, k, BM=bm, BN=bn, BK=bk, GROUP=GROUP, PRECISION=precision, num_warps=warps,
                num_stages=stages,
            )  # fmt: skip

        return call

    def ways(*precisions: str) -> dict[str, Call]:
        return {
            f"{precision}, BM={tile[0]} BN={tile[1]} BK={tile[2]} stages={tile[3]} warps={tile[4]}": way(
                precision, tile
            )
            for precision in precisions
            for tile in TILES
        }

    return [
        Contestant("triton:tf32x3", ways("tf32x3"), facts),
        # Triton before 3.6 has no bf16x6 in `tl.dot`. Such calls then fail, and the record has the error.
        Contestant("triton:bf16x6", ways("bf16x6", module.BY_HAND.value), facts),
    ]


def version(package: str) -> str:
    return str(import_module(package).__version__)
