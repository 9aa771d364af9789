"""Memory of a GPU: allocated here and freed when nothing refers to it, or memory of torch, CuPy or another package."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from gemmlab.arrays.on_gpu import UNKNOWN, DeviceArray
from gemmlab.core.errors import DeviceError, GemmlabError, UsageError
from gemmlab.devices.cuda_driver import Driver, order, preserved_context
from gemmlab.devices.cuda_texture import CudaTexture
from gemmlab.devices.device import Window
from gemmlab.devices.texels import Texels


class CudaBuffer:
    """Bytes on a GPU. Other packages see them as an array of bytes through `__cuda_array_interface__`."""

    def __init__(self, address: int, nbytes: int, owner: object = None) -> None:
        self.address = address
        self.nbytes = nbytes
        self.owner = owner
        """The object that keeps the memory alive; `None` if this buffer does."""
        self.release: Callable[[], object] = lambda: None
        """A function that frees the memory. It does nothing if the memory was freed before, or belongs to `owner`."""
        self.textures: dict[Texels, CudaTexture] = {}
        """Texture objects over this memory."""

    def drop_textures(self) -> None:
        """Destroy the texture objects over this memory."""
        for texture in self.textures.values():
            texture.release()
        self.textures.clear()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False), "strides": None,
                "stream": None, "version": 3}  # fmt: skip


class CudaMemory:
    """Memory of one GPU. Copies use one stream and are complete when the function returns.

    The GPU's context must be current.
    """

    def __init__(self, driver: Driver, context: Any, stream: Any) -> None:
        self._driver = driver
        self._context = context
        self._stream = stream

    def allocate(self, nbytes: int) -> CudaBuffer:
        """Return uninitialised memory on a 256-byte boundary; `MemoryError` if the GPU has too little."""
        address = int(self._driver("cuMemAlloc", max(1, nbytes), what=f"{nbytes} bytes"))
        buffer = CudaBuffer(address, nbytes)
        # At the end of the process the driver frees everything by itself, perhaps before finalizers run.
        freeing = weakref.finalize(buffer, _free, self._driver, self._context, address)
        freeing.atexit = False
        buffer.release = freeing
        return buffer

    def allocate_sparse(self, nbytes: int) -> CudaBuffer:
        """Return memory full of NaN; `MemoryError` if it is more than nine tenths of the free memory."""
        free, _ = self.room()
        if nbytes > free // 10 * 9:
            raise MemoryError(f"{nbytes / 1e9:.1f} GB; {free / 1e9:.1f} GB of the GPU's memory are free")
        buffer = self.allocate(nbytes)
        self._driver("cuMemsetD8Async", buffer.address, 0xFF, nbytes, self._stream)
        self._driver("cuStreamSynchronize", self._stream)
        return buffer

    def write(self, window: Window, array: npt.NDArray[Any]) -> None:
        """Copy a C-contiguous array into a part of a buffer; both must have the same size. `UsageError` otherwise."""
        if not array.flags.c_contiguous or array.nbytes != window.nbytes:
            raise UsageError(f"a C-contiguous array of {array.nbytes} bytes does not fit {window.nbytes} of the GPU")
        if array.nbytes:
            self._driver("cuMemcpyHtoDAsync", window.address, array.ctypes.data, array.nbytes, self._stream)
            self._driver("cuStreamSynchronize", self._stream)

    def upload(self, array: npt.NDArray[Any]) -> CudaBuffer:
        """Return a copy of a C-contiguous NumPy array in GPU memory. `UsageError` unless it is C-contiguous."""
        if not array.flags.c_contiguous:
            raise UsageError("only contiguous arrays can be copied to a GPU")
        buffer = self.allocate(array.nbytes)
        self.write(Window(buffer, 0, array.nbytes), array)
        return buffer

    def download(self, buffer: Any, out: npt.NDArray[Any]) -> None:
        """Copy a buffer into a C-contiguous array of the same size. `UsageError` for any other array."""
        if not out.flags.c_contiguous or out.nbytes != buffer.nbytes:
            raise UsageError(f"{buffer.nbytes} bytes of the GPU do not fit a C-contiguous array of {out.nbytes}")
        if out.nbytes:
            self._driver("cuMemcpyDtoHAsync", out.ctypes.data, buffer.address, out.nbytes, self._stream)
            self._driver("cuStreamSynchronize", self._stream)

    def duplicate(self, array: DeviceArray) -> CudaBuffer:
        """Return a copy of an array that lies on this GPU. `UsageError` unless it is C-contiguous."""
        if not array.contiguous:
            raise UsageError(f"an array of shape {array.shape} on the GPU is not C-contiguous; copy it first")
        self.wait_for(array)
        buffer = self.allocate(array.nbytes)
        if array.nbytes:
            self._driver("cuMemcpyDtoDAsync", buffer.address, array.pointer, array.nbytes, self._stream)
            self._driver("cuStreamSynchronize", self._stream)
        return buffer

    def borrow(self, array: DeviceArray) -> CudaBuffer:
        """Return the array's own memory as a buffer, after `wait_for`.

        The buffer spans the elements of a contiguous array; for a strided array only its address is meaningful.
        """
        self.wait_for(array)
        return CudaBuffer(array.pointer, array.nbytes, array.owner)

    def wait_for(self, array: DeviceArray) -> None:
        """Make this memory's stream wait for the work that is queued on the array's stream.

        If that stream is unknown, the host waits for all work on the GPU's context; an array without a stream needs no
        wait.
        """
        if array.stream is None:
            return
        if array.stream == UNKNOWN:
            self._driver("cuCtxSynchronize")
            return
        order(self._driver, self._stream, array.stream)

    def room(self) -> tuple[int, int]:
        """Return the free bytes and all bytes of the GPU's memory."""
        free, total = self._driver("cuMemGetInfo")
        return int(free), int(total)


def ordinal_of(driver: Driver, array: DeviceArray) -> int | None:
    """Return the number of the GPU on which an array lies; `None` for an empty array that names no GPU."""
    if array.device is not None or not array.pointer:
        return array.device
    about = driver.module.CUpointer_attribute
    context = driver("cuPointerGetAttribute", about.CU_POINTER_ATTRIBUTE_CONTEXT, array.pointer)
    # The attribute for the ordinal is 0 for every GPU in cuda-bindings 13.0.
    try:
        with preserved_context(driver):
            driver("cuCtxSetCurrent", context)
            return int(driver("cuCtxGetDevice"))
    except DeviceError:
        # Memory of a pool belongs to no context.
        return int(driver("cuPointerGetAttribute", about.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, array.pointer))


def _free(driver: Driver, context: Any, address: int) -> None:
    if context in driver.occupied:
        return
    # The thread that drops the last reference must not lose its current context.
    try:
        with preserved_context(driver):
            driver("cuCtxSetCurrent", context)
            driver("cuMemFree", address)
    except (GemmlabError, MemoryError):
        # After a kernel's fault nothing can be freed, and the memory is gone with the context.
        return
