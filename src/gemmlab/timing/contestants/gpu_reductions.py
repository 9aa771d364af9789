"""Reductions of libraries on a GPU: torch's, CuPy's, and CUB itself through cuda-cccl."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata
from typing import Any

import numpy as np

from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.device import Buffer
from gemmlab.timing.contestants.contestant import UnsupportedError, Work, call_for
from gemmlab.timing.contestants.gpu_arrays import Arrays, CupyArrays, TorchArrays
from gemmlab.timing.contestants.places import Place

SUMS = ("reduce", "sums")
"""The operations that are reductions, of all elements or along axes."""
_TORCH = {"sum": "sum", "max": "amax", "min": "amin"}


@dataclass(frozen=True, slots=True)
class Reduction:
    """One reduction as a user of an array package sees it: `out` = `operator` of `x` along `axes`."""

    operator: str
    x: Place
    out: Place
    axes: tuple[int, ...]


def reduction_of(work: Work) -> Reduction:
    """Return the reduction that the problem of `work` describes. The axes of `x` are sorted by stride, largest first.

    Raises `UnsupportedError` if there is no axis to reduce along.
    """
    if work.op == "reduce":
        return Reduction(work.problem["operator"], Place((int(work.scalars["n"]),), (1,)), Place((), ()), (0,))
    free, terms = work.problem["free"], work.problem["terms"]
    axes = sorted([*free, *([*term, 0] for term in terms)], key=lambda axis: -axis[1])
    along = tuple(index for index, axis in enumerate(axes) if axis[2] == 0)
    if not along:
        raise UnsupportedError("nothing is summed: the problem has no axis to sum along; libraries would sum all axes")
    x = Place(tuple(extent for extent, *_ in axes), tuple(step for _, step, _ in axes))
    results = [axis for axis in axes if axis[2]]
    return Reduction("sum", x, Place(tuple(axis[0] for axis in results), tuple(axis[2] for axis in results)), along)


def torch_reduction(arrays: TorchArrays, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
    """Return a call of `torch.sum(x, dim=axes, out=out)`, `torch.amax` or `torch.amin`."""
    what = reduction_of(work)
    x, out = arrays.array(buffers["x"], what.x), arrays.array(buffers["out"], what.out)
    return partial(getattr(arrays.torch, _TORCH[what.operator]), x, dim=what.axes, out=out)


def cupy_reduction(arrays: CupyArrays, work: Work, buffers: Mapping[str, Buffer]) -> FreshResult:
    """Return a call of `cupy.sum(x, axis=axes)`, `cupy.max` or `cupy.min`, which use CUB by default.

    With `out=`, CuPy computes the same new array and copies it by a second kernel.
    """
    what = reduction_of(work)
    x, out = arrays.array(buffers["x"], what.x), arrays.array(buffers["out"], what.out)
    return FreshResult(partial(getattr(arrays.cupy, what.operator), x, axis=what.axes), out)


def library_reduction(arrays: Arrays, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
    """Return a call of `gemmlab.sum(x, axes, out=out)`. Raises `UnsupportedError` for other operators than the sum."""
    import gemmlab

    what = reduction_of(work)
    if what.operator != "sum":
        raise UnsupportedError("gemmlab.sum adds")
    total: Callable[..., object] = gemmlab.sum
    x, out = arrays.array(buffers["x"], what.x), arrays.array(buffers["out"], what.out)
    return partial(total, x, what.axes, out=out)


class FreshResult:
    """A call that returns a new array each time; `deliver` copies the latest one to `out` for verification."""

    def __init__(self, call: Callable[[], object], out: Any) -> None:
        self._call, self._out = call, out
        self._last: object = None

    def __call__(self) -> None:
        self._last = self._call()

    def deliver(self) -> None:
        """Enqueue the copy of the latest result to `out`."""
        self._out[...] = self._last


class CubCall:
    """`cub::DeviceReduce`, compiled by cuda-cccl for this GPU, for sums of all elements.

    Everything except the call is set up beforehand.
    """

    def __init__(self, device: CudaDevice) -> None:
        device.activate()
        self._device = device
        self._compute: Any = import_module("cuda.compute")

    def prepare(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        call: Callable[[], object] = call_for("CUB", work.op, {"reduce": self._reduction})(work, buffers)
        return call

    def _reduction(self, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
        if work.problem["operator"] != "sum":
            # CUB's other operators are functions compiled from Python; only the sum is compared.
            raise UnsupportedError("only sums of CUB are timed")
        plus = self._compute.OpKind.PLUS
        x, out = _Floats(buffers["x"]), _Floats(buffers["out"])
        start = np.zeros(1, np.float32)
        reducer = self._compute.make_reduce_into(x, out, plus, start)
        # Later versions of cuda-cccl take the operator at each call, too.
        takes_operator = "op" in inspect.signature(type(reducer).__call__).parameters
        rest = (*([plus] if takes_operator else []), int(work.scalars["n"]), start, _Stream(int(self._device.stream)))
        scratch = self._device.allocate(max(1, int(reducer(None, x, out, *rest))))
        return partial(reducer, scratch, x, out, *rest)

    def facts(self) -> dict[str, Any]:
        return {"library": "CUB", "version": f"cuda-cccl {metadata.version('cuda-cccl')}", "core_type": "float32",
                "device": self._device.id}  # fmt: skip


class _Floats:
    """A device buffer as a float32 array for cuda-cccl, by `__cuda_array_interface__`."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self._buffer.nbytes // 4,), "typestr": "<f4", "data": (self._buffer.address, False),
                "strides": None, "stream": None, "version": 3}  # fmt: skip


class _Stream:
    """The device's stream for cuda-cccl, by the `__cuda_stream__` protocol."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle
