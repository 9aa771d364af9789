"""A request for a matrix product: operands as views of the right shape, and all checks of them.

Nothing here reads or writes an element. Only NumPy's shapes, strides and addresses are used, so a view may also
describe memory of a GPU (`dispatch/shadows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsFloat

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.mapped_file import file_part
from gemmlab.arrays.on_gpu import DeviceArray
from gemmlab.core.argument_checks import flag, float32_array, float32_scalar
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.core.words import shown
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.opaque_array import spread

Float32Array = npt.NDArray[np.float32]
_CALL = "gemm"


class Operand(NamedTuple):
    """An array of a call as a float32 view. The elements of an array on a GPU must not be read through the view."""

    view: Float32Array
    on_gpu: DeviceArray | None = None
    """The array on a GPU, if the view only describes it; `None` for memory of this machine."""


View = Callable[[str, str, object], Operand]
"""A function (name of the function called, name of the argument, value) -> operand.

It raises `ArgumentTypeError` for a value that it does not accept as an array.
"""


@dataclass(frozen=True, slots=True)
class Request:
    """One checked call, without its result. `left` and `right` are op(a) and op(b): matrices, or stacks of matrices."""

    left: Float32Array
    right: Float32Array
    batch: tuple[int, ...]
    """The leading axes of `left` and `right`, broadcast; empty for a single product."""
    shape: tuple[int, ...]
    """The shape of the result as the caller sees it."""
    row: bool
    column: bool
    """`row` is true if the left operand was one-dimensional, `column` if the right one was."""
    alpha: float
    beta: float
    """`alpha` and `beta` are rounded to float32."""
    addend: Float32Array | None
    """c, broadcast to `shape`; `None` without c, or if beta is 0, so that c is not read."""
    operands: tuple[Operand, Operand, Operand | None]
    """a, b and c as the caller passed them."""

    def stacks(self, target: Float32Array) -> tuple[Float32Array, Float32Array, Float32Array]:
        """Return (left matrices, right matrices, views of the results in `target`), all with the leading axes `batch`.

        A vector is a matrix of one row or one column.
        """
        full = target[..., np.newaxis] if self.column else target
        full = full[..., np.newaxis, :] if self.row else full
        return self._spread(self.left), self._spread(self.right), full

    def _spread(self, operand: Float32Array) -> Float32Array:
        # NumPy takes 5 us even where there is nothing to do.
        if operand.shape[:-2] == self.batch:
            return operand
        return spread(operand, (*self.batch, *operand.shape[-2:]))

    def products(self, target: Float32Array) -> Iterator[tuple[Float32Array, Float32Array, Float32Array]]:
        """Yield every product of two matrices that the result consists of, with its view of `target`."""
        lefts, rights, full = self.stacks(target)
        for index in np.ndindex(*self.batch):
            yield lefts[index], rights[index], full[index]


def host_operand(call: str, name: str, value: object) -> Operand:
    """Return a NumPy float32 array as an operand. Raises `ArgumentTypeError` for any other value.

    For an array of a store the error of `gemm` names the argument with which the call would take it.
    """
    try:
        return Operand(float32_array(call, name, value))
    except ArgumentTypeError as error:
        of_store = not isinstance(value, np.ndarray) and all(hasattr(value, x) for x in ("shape", "dtype", "chunks"))
        if call != _CALL or not of_store:
            raise
        raise ArgumentTypeError(f"{error}; with memory_bytes=, gemm multiplies arrays of a store in pieces") from None


def request(call: Call, view: View) -> Request:
    """Return the request for a call, with a, b, c, alpha, beta and the flags checked; other arguments are not checked.

    Raises `ArgumentTypeError` and `UsageError`.
    """
    scale, keep = checked_factors(call)
    a, b = _operand("a", call.a, view), _operand("b", call.b, view)
    left, right = a.view, b.view
    row, column = left.ndim == 1, right.ndim == 1
    check_flags(call)
    left = left[np.newaxis, :] if row else left.swapaxes(-1, -2) if call.trans_a else left
    right = right[:, np.newaxis] if column else right.swapaxes(-1, -2) if call.trans_b else right
    if left.shape[-1] != right.shape[-2]:
        raise UsageError(
            f"gemm: op(a) of shape {left.shape} and op(b) of shape {right.shape} do not fit: "
            f"k is {left.shape[-1]} on the left and {right.shape[-2]} on the right"
        )
    try:
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError as error:
        raise UsageError(
            f"gemm: leading axes {left.shape[:-2]} of a and {right.shape[:-2]} of b do not broadcast"
        ) from error
    matrix = (*batch, left.shape[-2], right.shape[-1])
    shape = (*batch, *(() if row else matrix[-2:-1]), *(() if column else matrix[-1:]))
    c = None if call.c is None else view(_CALL, "c", call.c)
    addend = _addend(None if c is None else c.view, keep, shape)
    return Request(left, right, batch, shape, row, column, scale, keep, addend, (a, b, c))


def checked_factors(call: Call) -> tuple[float, float]:
    """Return alpha and beta rounded to float32. Raises `ArgumentTypeError`."""
    return _scalar("alpha", call.alpha), _scalar("beta", call.beta)


def check_flags(call: Call) -> None:
    """Raise `ArgumentTypeError` for a flag of a call that is none."""
    for name in ("trans_a", "trans_b", "reproducible"):
        flag(_CALL, name, getattr(call, name))


def checked_target(target: Float32Array, request: Request) -> Float32Array:
    """Return `target`, the view of `out`. Raises `UsageError` if the result cannot be written to it.

    It may be the same elements as c, but may share no others with an operand.
    """
    if target.shape != request.shape:
        raise UsageError(f"gemm: out has shape {target.shape}; the result has {request.shape}")
    if not target.flags.writeable:
        raise UsageError("gemm: out is read-only")
    if folds(target.shape, target.strides):
        raise UsageError(f"gemm: elements of out share memory with each other (strides {target.strides})")
    for name, operand in (("a", request.left), ("b", request.right), ("c", request.addend)):
        if operand is not None and not (name == "c" and same(operand, target)) and overlap(operand, target):
            raise UsageError(f"gemm: out shares memory with {name}; give it memory of its own")
    _require_other_parts(target, request)
    return target


def _require_other_parts(target: Float32Array, request: Request) -> None:
    """Raise `UsageError` if the result and an operand are mapped from overlapping parts of one file.

    A part reaches from the first byte of an array to its last: gaps count, so no element need be shared. Only c may
    have the same part, if its strides are the same, too. Only mappings by `numpy.memmap` are known.
    """
    part = file_part(target)
    if part is None:
        return
    for name, operand in (("a", request.left), ("b", request.right), ("c", request.addend)):
        theirs = None if operand is None else file_part(operand)
        if operand is None or theirs is None or not part.overlaps(theirs):
            continue
        # If these are the same elements as c, they are read before they are written.
        if name != "c" or operand.strides != target.strides or part[1:3] != theirs[1:3]:
            raise UsageError(
                f"gemm: out and {name} are mapped from the same part of {part.path}; give out a part of its own"
            )


def same(left: Float32Array, right: Float32Array) -> bool:
    """Return whether two arrays of one shape are the same elements in memory; true for empty arrays.

    The stride of an axis of extent 1 is ignored.
    """
    if left.size == 0:
        return True
    axes = zip(left.shape, left.strides, right.strides, strict=True)
    return left.ctypes.data == right.ctypes.data and all(extent == 1 or one == two for extent, one, two in axes)


def rows_contiguous(matrix: Float32Array) -> bool:
    """Return whether the elements of each row are adjacent and the rows do not overlap."""
    rows, cols = matrix.shape
    down, over = matrix.strides
    return matrix.size == 0 or ((cols == 1 or over == 4) and (rows == 1 or (down % 4 == 0 and down >= 4 * cols)))


def _operand(name: str, value: object, view: View) -> Operand:
    found = view(_CALL, name, value)
    if found.view.ndim == 0:
        raise UsageError(f"gemm: {name} is a scalar; it must have at least one axis")
    return found


def _scalar(name: str, value: SupportsFloat) -> float:
    try:
        if not isinstance(value, (str, bytes, bytearray)):
            return float32_scalar(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"gemm: {name} is {shown(value)}, not a real number") from error
    raise ArgumentTypeError(f"gemm: {name} is {shown(value)}, not a real number")


def _addend(c: Float32Array | None, beta: float, shape: tuple[int, ...]) -> Float32Array | None:
    """Return c broadcast to `shape`; `None` without c, or if beta is 0.

    Raises `UsageError` if c is missing and beta is not 0, or if c does not broadcast.
    """
    if c is None:
        if beta != 0.0:
            raise UsageError(f"gemm: beta is {beta} but there is no c to scale by it")
        return None
    try:
        found = spread(c, shape)
    except ValueError as error:
        raise UsageError(f"gemm: c of shape {c.shape} does not broadcast to the result's {shape}") from error
    return None if beta == 0.0 else found


def folds(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether two elements of a float32 array may share bytes, by its strides; false for transposed and sliced
    arrays.

    For unusual strides the result may be true although no bytes are shared.
    """
    reach = FLOAT_BYTES
    for stride, extent in sorted((abs(s), n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride < reach:
            return 0 not in shape
        reach = stride * (extent - 1) + reach
    return False


def overlap(left: Float32Array, right: Float32Array) -> bool:
    """Return whether two arrays share an element, or may share one if an exact answer would take too long."""
    if not np.may_share_memory(left, right):
        return False
    effort: Any = 100_000
    try:
        return np.shares_memory(left, right, max_work=effort)
    except (np.exceptions.TooHardError, OverflowError):
        return True
