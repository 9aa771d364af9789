"""Memory of one GPU: buffers, arrays of other packages, textures and tensor maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.on_gpu import DeviceArray, device_array
from gemmlab.core.errors import DeviceError
from gemmlab.core.tensor_map import TiledMap
from gemmlab.devices.cuda_context import CudaContext
from gemmlab.devices.cuda_memory import CudaBuffer, ordinal_of
from gemmlab.devices.cuda_tensor_map import encode
from gemmlab.devices.cuda_texture import create_texture
from gemmlab.devices.device import Buffer, Window
from gemmlab.devices.texels import owner_of, texels_of


class CudaStorage(CudaContext):
    """The memory of a GPU, as the device protocol has it. Functions that use the GPU, except `free`, make its context
    current.
    """

    def allocate(self, nbytes: int) -> CudaBuffer:
        """Return uninitialised memory on a 256-byte boundary; `MemoryError` if the GPU has too little."""
        self._enter()
        return self.memory.allocate(nbytes)

    def allocate_sparse(self, nbytes: int) -> CudaBuffer:
        """Return memory full of NaN; `MemoryError` if the GPU has too little free memory."""
        self._enter()
        return self.memory.allocate_sparse(nbytes)

    def write(self, window: Window, array: npt.NDArray[Any]) -> None:
        """Copy a C-contiguous array into a part of a buffer; both must have the same size."""
        self._enter()
        self.memory.write(window, array)

    def read(self, window: Window, out: npt.NDArray[Any]) -> None:
        """Copy a part of a buffer into a C-contiguous array; both must have the same size."""
        self.download(window, out)

    def upload(self, array: Any) -> CudaBuffer:
        """Return a copy of a C-contiguous array: a NumPy array, or an array of another package on this GPU."""
        self._enter()
        if isinstance(array, np.ndarray):
            return self.memory.upload(array)
        return self.memory.duplicate(self._mine(array))

    def borrow(self, array: Any) -> CudaBuffer:
        """Return the memory of another package's array on this GPU, to work on it in place (`CudaMemory.borrow`)."""
        self._enter()
        return self.memory.borrow(self._mine(array))

    def free(self, buffer: CudaBuffer) -> None:
        """Destroy the textures over a buffer and free its memory now. Memory of another package is not freed."""
        buffer.drop_textures()
        buffer.release()

    @property
    def most_texels(self) -> int:
        """The most texels of one texture over linear memory."""
        return int(self.facts["texture_1d_linear"])

    def linear_texture(self, buffer: Buffer, channels: int = 4, element: str = "f32") -> int:
        """Return the handle of a texture over a buffer (see `texture.texels_of`); it lives as long as the buffer.

        A second call with equal arguments returns the same texture.
        """
        texels, owner = texels_of(buffer, channels, element, self.most_texels), owner_of(buffer)
        if texels not in owner.textures:
            self._enter()
            owner.textures[texels] = create_texture(self._driver, self._context, texels)
        return int(owner.textures[texels])

    def tensor_map(self, tensor: TiledMap) -> bytes:
        """Return the 128 bytes of a tensor map, made by the driver. `DeviceError` if it refuses the map."""
        self._enter()
        return encode(self._driver, tensor)

    def download(self, buffer: Any, out: npt.NDArray[Any]) -> None:
        """Copy a buffer into a C-contiguous array of the same size."""
        self._enter()
        self.memory.download(buffer, out)

    def _mine(self, array: Any) -> DeviceArray:
        """Return the description of another package's array. `DeviceError` if it lies on another GPU."""
        found = device_array(array)
        where = ordinal_of(self._driver, found)
        if where not in (None, self.ordinal):
            raise DeviceError(f"the array lies on cuda:{where}, not on {self.id}")
        return found
