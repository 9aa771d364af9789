"""Texture objects on a driver made of Python: what it is asked for, and that nothing is left behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from gemmlab.devices import cuda_context
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_driver import Driver
from gemmlab.devices.cuda_memory import CudaBuffer
from gemmlab.devices.device import TextureDevice, Window
from gemmlab.devices.texels import matrix_texture
from support.fake_driver import FakeModule, Names


@dataclass
class TexturingModule(FakeModule):
    """The fake driver with texture objects."""

    created: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    made: int = 0

    CUresourcetype = CUarray_format = Names()
    CU_TRSF_READ_AS_INTEGER = 1

    def CUDA_RESOURCE_DESC(self) -> Any:  # noqa: N802 - the driver's name
        return SimpleNamespace(res=SimpleNamespace(linear=SimpleNamespace()))

    def CUDA_TEXTURE_DESC(self) -> Any:  # noqa: N802 - the driver's name
        return SimpleNamespace()

    def CUdeviceptr(self, address: int) -> int:  # noqa: N802 - the driver's name
        return address

    def device_get_attribute(self, name: str, _device: int) -> tuple[int, int]:
        return (0, 1000) if "TEXTURE1D_LINEAR" in name else super().device_get_attribute(name, _device)

    def _call(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        if name == "cuTexObjectCreate":
            self.made += 1
            self.created[self.made] = arguments[0], arguments[1]
            return 0, self.made
        if name == "cuTexObjectDestroy":
            del self.created[arguments[0]]
            return (0,)
        return super()._call(name, *arguments)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[TexturingModule]:
    fake = TexturingModule()
    monkeypatch.setattr(cuda_context, "open_driver", lambda: Driver(fake))
    yield fake
    gc.collect()


@pytest.mark.in_turns(20)
def test_the_driver_is_told_what_the_texture_covers(module: TexturingModule) -> None:
    device = CudaDevice()
    assert isinstance(device, TextureDevice)
    buffer = CudaBuffer(5 * 512 + 32, 100)
    handle = device.linear_texture(buffer)
    resource, sampling = module.created[handle]
    linear = resource.res.linear
    assert (linear.devPtr, linear.sizeInBytes, linear.numChannels) == (5 * 512, 128, 4)
    assert (resource.resType, linear.format) == ("CU_RESOURCE_TYPE_LINEAR", "CU_AD_FORMAT_FLOAT")
    assert sampling.flags == 0
    resource, sampling = module.created[device.linear_texture(buffer, 2, "u16")]
    assert (resource.res.linear.format, sampling.flags) == ("CU_AD_FORMAT_UNSIGNED_INT16", 1)


@pytest.mark.in_turns(20)
def test_the_same_texture_is_made_once_and_goes_with_its_memory(module: TexturingModule) -> None:
    device = CudaDevice()
    buffer = device.allocate(4096)
    address = buffer.address
    shift = -address % 512
    handles = {device.linear_texture(Window(buffer, shift, 1024)) for _ in range(3)}
    assert handles == set(module.created) == {1}
    device.linear_texture(Window(buffer, shift, 512))
    assert len(module.created) == 2
    device.free(buffer)
    assert not module.created
    kept = CudaBuffer(512, 1024)
    device.linear_texture(kept)
    assert len(module.created) == 1
    del kept
    gc.collect()
    assert not module.created


def test_the_driver_says_how_long_a_texture_may_be(module: TexturingModule) -> None:
    del module
    device = CudaDevice()
    assert device.most_texels == 1000
    assert matrix_texture(device, CudaBuffer(512, 16 * 1000), 4) > 0
    assert matrix_texture(device, CudaBuffer(512, 16 * 1001), 4) == 0
