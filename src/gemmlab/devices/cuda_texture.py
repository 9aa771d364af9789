"""Texture objects of the CUDA driver over linear memory."""

from __future__ import annotations

import weakref
from typing import Any

from gemmlab.core.errors import GemmlabError
from gemmlab.devices.cuda_driver import Driver, preserved_context
from gemmlab.devices.texels import Texels

_FORMATS = {"f32": "FLOAT", "f16": "HALF", "u16": "UNSIGNED_INT16", "s16": "SIGNED_INT16"}


class CudaTexture:
    """A texture object with the driver's handle `int(texture)`. It is destroyed by `release`, or when nothing refers to
    it.
    """

    def __init__(self, driver: Driver, context: Any, handle: int) -> None:
        self._handle = handle
        self.release = weakref.finalize(self, _destroy, driver, context, handle)
        # At the end of the process the driver destroys everything by itself, perhaps before finalizers run.
        self.release.atexit = False

    def __int__(self) -> int:
        return self._handle


def create_texture(driver: Driver, context: Any, texels: Texels) -> CudaTexture:
    """Return a texture object in `context`, which must be current.

    A kernel reads 16-bit floats as 32-bit floats, and integers as they are.
    """
    module = driver.module
    resource, sampling = module.CUDA_RESOURCE_DESC(), module.CUDA_TEXTURE_DESC()
    resource.resType = module.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
    linear = resource.res.linear
    linear.devPtr = module.CUdeviceptr(texels.address)
    linear.format = getattr(module.CUarray_format, f"CU_AD_FORMAT_{_FORMATS[texels.element]}")
    linear.numChannels = texels.channels
    linear.sizeInBytes = texels.nbytes
    # Without this flag 16-bit integers would be read as fractions of their largest value.
    sampling.flags = 0 if texels.element.startswith("f") else module.CU_TRSF_READ_AS_INTEGER
    what = f"a texture of {texels.count} texels"
    return CudaTexture(driver, context, int(driver("cuTexObjectCreate", resource, sampling, None, what=what)))


def _destroy(driver: Driver, context: Any, handle: int) -> None:
    try:
        with preserved_context(driver):
            driver("cuCtxSetCurrent", context)
            driver("cuTexObjectDestroy", handle)
    except (GemmlabError, MemoryError):
        # After a kernel's fault the context is gone, and the texture with it.
        return
