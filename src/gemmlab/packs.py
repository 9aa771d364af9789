"""`gemmlab.pack`: a right operand in the order in which products read it, for many calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.on_gpu import is_device_array
from gemmlab.arrays.on_host import host_view, is_host_array
from gemmlab.codegen.microkernel import best_tile
from gemmlab.core.argument_checks import flag, float32_array
from gemmlab.core.errors import UsageError
from gemmlab.ir.target import host_target

Float32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A right operand of `gemmlab.gemm`, packed by `gemmlab.pack` for this processor. It cannot be changed."""

    shape: tuple[int, int]
    """Extents k and n of the packed matrix op(b)."""
    strips: Float32Array = field(repr=False)
    """Strips of columns one after the other, each row by row: shape (strips, k, columns of a strip), zeros beyond the
    last column.
    """
    dtype: np.dtype[np.float32] = field(default=np.dtype(np.float32), repr=False)
    ndim: int = field(default=2, repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of memory, padding included."""
        return int(self.strips.nbytes)

    def __repr__(self) -> str:
        return f"<gemmlab.pack of {self.shape[0]} x {self.shape[1]} float32, {self.nbytes:,} bytes>"

    def __reduce__(self) -> NoReturn:
        raise UsageError("a packed operand fits one processor only: pickle the matrix, and pack it again")

    def __array__(self, *_args: Any, **_options: Any) -> NoReturn:
        raise UsageError("a packed operand is no array: it can be the right operand of gemmlab.gemm only")


def pack(b: Any, *, trans_b: bool = False) -> Packed:
    """Return op(b) packed: `gemm(a, pack(b))` is `gemm(a, b)` without reading b across its rows at each call.

    `b` is a float32 matrix of k rows and n columns, any view of NumPy's or another package's in this machine's memory;
    with `trans_b` its transpose is packed. Later changes of `b` have no effect. The product has the same bits as that
    of an array in C order, on any number of threads. It pays for few rows of `a` and a `b` larger than the caches,
    where the time goes to reading b; products that take less than 0.5 ms are slower than with an array.

    Raises `ArgumentTypeError` for what is no float32 array and for a `trans_b` that is no flag, `UsageError` for a
    packed operand and for an array on a GPU or without two axes, and `MemoryError`.
    """
    if isinstance(b, Packed):
        raise UsageError("pack: b is packed already")
    if is_device_array(b):
        raise UsageError("pack: b lies on a GPU; operands are packed on a CPU only")
    turned = flag("pack", "trans_b", trans_b)
    view = float32_array("pack", "b", host_view("pack", "b", b) if is_host_array(b) else b)
    if view.ndim != 2:
        raise UsageError(f"pack: b has shape {view.shape}; it must have two axes")
    matrix = view.T if turned else view
    k, n = matrix.shape
    width = best_tile(host_target()).cols
    strips = np.zeros((-(-n // width), k, width), np.float32)
    for number, strip in enumerate(strips):
        part = matrix[:, number * width : (number + 1) * width]
        strip[:, : part.shape[1]] = part
    strips.flags.writeable = False
    return Packed((k, n), strips)
