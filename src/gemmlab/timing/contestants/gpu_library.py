"""Contestants on a GPU: the libraries to compare with, and gemmlab's own library call.

Each uses the buffers and the stream of the worker's device and is timed by events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from gemmlab.core.precision import FLOAT32, TF32
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.device import Buffer
from gemmlab.devices.select import open_device
from gemmlab.ops.catalog import find_op
from gemmlab.timing.contestants.contestant import Contestant, Prepared, UnsupportedError, Work, call_for, in_turn
from gemmlab.timing.contestants.cpu_library import library_group, library_options, precision_options
from gemmlab.timing.contestants.cublas import Cublas, require_int32_extents
from gemmlab.timing.contestants.cublaslt import CublasLtCall
from gemmlab.timing.contestants.gpu_arrays import CupyArrays, TorchArrays, installed_arrays, operand
from gemmlab.timing.contestants.gpu_reductions import (
    SUMS,
    CubCall,
    FreshResult,
    cupy_reduction,
    library_reduction,
    torch_reduction,
)
from gemmlab.timing.contestants.on_device import Attachment, OnDevice
from gemmlab.timing.contestants.places import GROUP, PRODUCTS, products_of, stored


class Library(Protocol):
    """The interface of an adapter that calls a GPU library: it prepares a problem and states facts. `GpuCall` makes it
    a contestant.
    """

    def prepare(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        """Return a callable that enqueues the operation on the device's stream.

        Raises `UnsupportedError` for a problem that the library cannot do.
        """

    def facts(self) -> dict[str, Any]:
        """Return library, version and arithmetic (`core_type`)."""


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A computation that `call` enqueues on the device's stream; errors call it `name`."""

    device: CudaDevice
    call: Callable[[], object]
    name: str

    def run(self) -> None:
        self.time(1)
        if isinstance(self.call, FreshResult):
            self.device.time_enqueued(self.call.deliver, 1, 1, self.name)

    def time(self, repeats: int, inner: int = 1) -> list[float]:
        return self.device.time_enqueued(self.call, repeats, inner, self.name)


class GpuCall:
    """A GPU library as a contestant."""

    def __init__(self, name: str, device: CudaDevice, library: Library) -> None:
        self._name, self._device, self._library = name, device, library

    def prepare(self, work: Work) -> Prepared:
        def attach(buffers: Mapping[str, Buffer]) -> Attachment:
            return Enqueued(self._device, self._library.prepare(work, buffers), self._name)

        op = find_op(work.op)
        outputs = [operand.name for operand in op.operands(op.problem_from_json(work.problem)) if operand.role != "in"]
        return OnDevice(self._device, work, outputs, attach)

    def facts(self) -> dict[str, Any]:
        return {**self._library.facts(), "device": self._device.id, "mode": self._device.mode}


class LibraryOnGpu:
    """`gemmlab.gemm(out=)`, `gemm_group(out=)` or `sum(out=)`, as a user calls it with arrays on the GPU.

    Operands that the problem transposes are passed as they are stored, with `trans_a` or `trans_b`.
    """

    def __init__(self, device: CudaDevice, *, precision: str = FLOAT32, reproducible: bool = False) -> None:
        self._arrays, self._precision = installed_arrays(device), precision
        self._options = precision_options(precision, reproducible=reproducible)

    def prepare(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        calls: Mapping[str, Callable[..., Any]] = {
            **dict.fromkeys(PRODUCTS, self._product), **dict.fromkeys(SUMS, partial(library_reduction, self._arrays)),
            GROUP: self._group,
        }  # fmt: skip
        call: Callable[[], object] = call_for("gemmlab on a GPU", work.op, calls)(work, buffers)
        return call

    def _product(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        import gemmlab

        gemm: Callable[..., object] = gemmlab.gemm
        a, b, c = (self._arrays.array(buffers[name], stored(work, name)) for name in ("a", "b", "c"))
        return partial(gemm, a, b, **library_options(work, c), **self._options)

    def _group(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        def array(one: Work, name: str) -> Any:
            return self._arrays.array(buffers[name], stored(one, name))

        return partial(library_group(work, array), **self._options)

    def facts(self) -> dict[str, Any]:
        from gemmlab.core.version import __version__

        rounding = {FLOAT32: "float32, no TF32", TF32: "float32, TF32"}.get(self._precision, self._precision)
        return {"library": "gemmlab", "version": __version__, "core_type": rounding, "arrays": self._arrays.name}


def group_in_turn(
    product: Callable[[Work, Mapping[str, Buffer]], Callable[[], object]], work: Work, buffers: Mapping[str, Buffer]
) -> Callable[[], object]:
    """Return a callable that enqueues the products of a group one after the other; `product` prepares each."""
    return in_turn([product(one, buffers) for one in products_of(work)])


class CublasCall:
    """cuBLAS called directly, with the least overhead possible from Python; for a group in a loop."""

    def __init__(self, path: str, device: CudaDevice, *, tf32: bool = False) -> None:
        device.activate()
        self._library = Cublas(path, int(device.stream), tf32=tf32)

    def prepare(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        if work.op == GROUP:
            return group_in_turn(self.prepare, work, buffers)
        product = call_for("cuBLAS", work.op, {"gemm": self._library.prepare, "batch": self._library.prepare_batch})
        require_int32_extents(work)
        addresses = {name: buffer.address + 4 * stored(work, name).first for name, buffer in buffers.items()}
        call: Callable[[], object] = product(work.scalars, addresses)
        return call

    def facts(self) -> dict[str, Any]:
        return self._library.facts()


class TorchCall:
    """`torch.mm(out=)`, or `torch.addmm(out=)` if alpha and beta are not 1 and 0; `torch.sum(out=)`, `amax` or `amin`.

    A batch is `torch.bmm(out=)` or `torch.baddbmm(out=)`. If all products share a matrix it is `torch.matmul`, which
    computes them as one product; it is called without `out`, whose memory it would replace instead of writing to it.
    Such a batch is supported only for alpha 1 and beta 0. A group is `torch.mm(out=)` in a loop: torch has no grouped
    product of float32.
    """

    def __init__(self, device: CudaDevice, *, tf32: bool = False) -> None:
        self._arrays = TorchArrays(device)
        self._torch = self._arrays.torch
        self._torch.backends.cuda.matmul.allow_tf32 = self._tf32 = tf32

    def prepare(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        calls: Mapping[str, Callable[..., Any]] = {
            **dict.fromkeys(PRODUCTS, self._product),
            **dict.fromkeys(SUMS, partial(torch_reduction, self._arrays)),
            GROUP: partial(group_in_turn, self._product),
        }
        call: Callable[[], object] = call_for("torch", work.op, calls)(work, buffers)
        return call

    def _product(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        torch = self._torch
        a, b, c = (operand(self._arrays, work, buffers, name) for name in ("a", "b", "c"))
        if work.plain and a.ndim == b.ndim:
            return partial(torch.mm if a.ndim == 2 else torch.bmm, a, b, out=c)
        if work.plain:
            return FreshResult(partial(torch.matmul, a, b), c)
        if a.ndim != b.ndim:
            raise UnsupportedError("torch.baddbmm has no matrix that all products share")
        alpha, beta = float(work.scalars["alpha"]), float(work.scalars["beta"])
        return partial(torch.addmm if a.ndim == 2 else torch.baddbmm, c, a, b, beta=beta, alpha=alpha, out=c)

    def facts(self) -> dict[str, Any]:
        torch = self._torch
        return {"library": "torch", "version": f"{torch.__version__} (CUDA {torch.version.cuda})",
                "core_type": "float32, TF32" if self._tf32 else "float32, no TF32"}  # fmt: skip


class CupyCall:
    """`cupy.matmul(out=)`, for a group in a loop; `cupy.sum`, `max` or `min`, which run CUB for all elements and along
    adjacent axes.
    """

    def __init__(self, device: CudaDevice) -> None:
        self._arrays = CupyArrays(device)
        self._cupy = self._arrays.cupy

    def prepare(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        calls: Mapping[str, Callable[..., Any]] = {
            **dict.fromkeys(PRODUCTS, self._product), **dict.fromkeys(SUMS, partial(cupy_reduction, self._arrays)),
            GROUP: partial(group_in_turn, self._product),
        }  # fmt: skip
        call: Callable[[], object] = call_for("cupy", work.op, calls)(work, buffers)
        return call

    def _product(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        if not work.plain:
            raise UnsupportedError("cupy.matmul has no alpha and beta")
        a, b, c = (operand(self._arrays, work, buffers, name) for name in ("a", "b", "c"))
        return partial(self._cupy.matmul, a, b, out=c)

    def facts(self) -> dict[str, Any]:
        number = self._cupy.cuda.runtime.runtimeGetVersion()
        version = f"{self._cupy.__version__} (CUDA {number // 1000}.{number % 1000 // 10})"
        return {"library": "CuPy", "version": version, "core_type": "float32, no TF32"}


def make_gpu_contestant(
    kind: str, path: str | None, device: str, mode: str, precision: str = FLOAT32, *, reproducible: bool = False
) -> Contestant:  # fmt: skip
    """Return a contestant of `kind` `"gemmlab"`, `"torch"`, `"cupy"`, `"cub"`, `"cublas"` or `"cublaslt"`.

    The last two are loaded from `path`. `"cublas"` and `"torch"` may round to TF32 if `precision` is that; `"gemmlab"`
    knows every precision and `reproducible`, the others compute in float32. Raises `UnsupportedError` for a device that
    is no CUDA device.
    """
    where = open_device(device, mode)
    if not isinstance(where, CudaDevice):
        raise UnsupportedError(f"{kind} runs on cuda devices, not on {where.id}")
    if kind == "cublas":
        return GpuCall(kind, where, CublasCall(path or "", where, tf32=precision == TF32))
    packages: Mapping[str, Callable[[CudaDevice], Library]] = {
        "gemmlab": partial(LibraryOnGpu, precision=precision, reproducible=reproducible),
        "cublaslt": partial(CublasLtCall, path or ""),
        "torch": partial(TorchCall, tf32=precision == TF32), "cupy": CupyCall, "cub": CubCall,
    }  # fmt: skip
    return GpuCall(kind, where, packages[kind](where))
