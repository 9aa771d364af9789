"""Reductions of libraries on a GPU: torch's, CuPy's, and CUB itself through cuda-cccl."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module, metadata
from typing import Any

import numpy as np

from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.device import Buffer
from gemmlab.timing.contestants.contestant import UnsupportedError, Work, call_for

_TORCH = {"sum": "sum", "max": "amax", "min": "amin"}


def torch_reduction(torch: Any, where: str, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
    """Return a call of `torch.sum(x, dim=0, out=out)`, `torch.amax` or `torch.amin`."""
    x, out = (torch.as_tensor(buffers[name], device=where).view(torch.float32) for name in ("x", "out"))
    return partial(getattr(torch, _TORCH[work.problem["operator"]]), x, dim=0, out=out.reshape(()))


def cupy_reduction(cupy: Any, work: Work, buffers: Mapping[str, Buffer]) -> Callable[[], object]:
    """Return a call of `cupy.sum(x, out=out)`, `cupy.max` or `cupy.min`, which use CUB by default."""
    x, out = (cupy.asarray(buffers[name]).view(cupy.float32) for name in ("x", "out"))
    return partial(getattr(cupy, work.problem["operator"]), x, out=out.reshape(()))


class CubCall:
    """`cub::DeviceReduce`, compiled by cuda-cccl for this GPU; everything but the call is set up beforehand."""

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
            raise UnsupportedError("CUB is asked for sums only")
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
    """Our device buffer as a float32 array for cuda-cccl, by `__cuda_array_interface__`."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self._buffer.nbytes // 4,), "typestr": "<f4", "data": (self._buffer.address, False),
                "strides": None, "stream": None, "version": 3}  # fmt: skip


class _Stream:
    """Our stream for cuda-cccl, by the `__cuda_stream__` protocol."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle
