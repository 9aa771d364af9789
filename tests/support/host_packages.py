"""Arrays of made-up packages in this machine's memory, over NumPy's."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import numpy.typing as npt


class Plain:
    """An array that speaks DLPack, of a package without `from_dlpack`."""

    lies = 1
    """Where, in DLPack's numbers."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.lies, 0


class Old(Plain):
    """One whose DLPack is too old to say that it may be written to."""

    def __dlpack__(self, **_options: Any) -> Any:
        return self.values.__dlpack__()


class Standard(Plain):
    """One of a package that follows the array API standard."""

    def __array_namespace__(self) -> Any:
        return types.SimpleNamespace(from_dlpack=lambda array: Standard(np.from_dlpack(array)))


class Tensor(Plain):
    """torch's, as far as it is asked."""

    is_cuda, device, requires_grad = False, types.SimpleNamespace(type="cpu"), False

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    def numpy(self) -> npt.NDArray[Any]:
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self.values
