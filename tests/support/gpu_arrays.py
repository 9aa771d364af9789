"""Arrays that say they lie on a GPU, and packages that make them: for tests without a GPU."""

from __future__ import annotations

import sys
import types
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest


class OnGpu:
    """Host memory that says it lies on a GPU."""

    version = 3

    def __init__(self, values: npt.NDArray[Any], stream: int | None = None) -> None:
        self.values, self.stream = values, stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        shown: dict[str, Any] = self.values.__array_interface__
        return {
            "shape": shown["shape"], "typestr": shown["typestr"], "data": shown["data"], "strides": shown["strides"],
            "version": self.version, "stream": self.stream,
        }  # fmt: skip


class OnlyDlpack:
    """An array that says nothing of itself but DLPack."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


class Tensor(OnGpu):
    """torch's, as far as it is asked."""

    version, device = 2, "cuda:1"
    is_cuda, requires_grad = True, False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    def stride(self) -> tuple[int, ...]:
        return tuple(step // 4 for step in self.values.strides)

    def get_device(self) -> int:
        return 1

    def is_neg(self) -> bool:
        return False

    def data_ptr(self) -> int:
        return int(self.values.ctypes.data)

    def contiguous(self) -> Tensor:
        return Tensor(np.array(self.values, order="C"))

    def copy_(self, source: Tensor) -> None:
        self.values[...] = source.values


class _Device:
    """One of two; the other is current outside of a `with`."""

    id, current = 1, 0

    def __enter__(self) -> None:
        _Device.current = self.id

    def __exit__(self, *_: object) -> None:
        _Device.current = 0


class Array(OnGpu):
    """CuPy's. Of a shape it is made on the device that is current."""

    device = _Device()

    def __init__(self, what: Any, dtype: Any = np.float32) -> None:
        if isinstance(what, tuple):
            assert _Device.current == 1
            what = np.full(what, np.nan, dtype)
        super().__init__(what)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self.values.strides

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.values.ctypes.data, device_id=1)

    def __setitem__(self, key: Any, source: Array) -> None:
        self.values[key] = source.values


def empty_strided(shape: tuple[int, ...], strides: tuple[int, ...], *, dtype: Any, device: str) -> Tensor:
    made = Tensor(np.full(shape, np.nan, dtype))
    assert device == made.device
    assert 0 in shape or strides == made.stride()
    return made


def play_torch(monkeypatch: pytest.MonkeyPatch, stream: int) -> None:
    torch: Any = types.ModuleType("torch")
    torch.Tensor, torch.float32, torch.no_grad = Tensor, np.float32, nullcontext
    torch.empty_strided = empty_strided
    torch.cuda = SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream={"cuda:1": stream}[device]))
    torch._C = SimpleNamespace(_cuda_getCurrentRawStream={1: stream}.__getitem__)
    monkeypatch.setitem(sys.modules, "torch", torch)


def play_cupy(monkeypatch: pytest.MonkeyPatch, stream: int) -> None:
    cupy: Any = types.ModuleType("cupy")
    cupy.ndarray, cupy.float32 = Array, np.float32
    cupy.ascontiguousarray = lambda x: Array(np.ascontiguousarray(x.values))
    cupy.cuda = SimpleNamespace(
        get_current_stream=lambda device: SimpleNamespace(ptr={1: stream}[device]),
        runtime=SimpleNamespace(getDevice=lambda: _Device.current),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
