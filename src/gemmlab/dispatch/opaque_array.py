"""NumPy views of memory that the host cannot read, which are shown by their description, not by their elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]


class OpaqueArray(np.ndarray[Any, np.dtype[np.float32]]):
    """A view of memory of a GPU. A traceback with its arguments, as pytest prints it, would read any other view: the
    process would end with a segmentation fault in the place of an error.
    """

    def __repr__(self) -> str:
        return f"<opaque float32 array, shape {self.shape}, strides {self.strides}>"

    __str__ = __repr__


def spread(operand: Float32Array, shape: tuple[int, ...]) -> Float32Array:
    """Return an array broadcast to a shape; opaque if the operand is. Raises `ValueError` if it does not broadcast."""
    return np.broadcast_to(operand, shape, subok=isinstance(operand, OpaqueArray))
