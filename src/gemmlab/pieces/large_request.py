"""A request for a product in pieces: the matrices as they are stored, and all checks of them.

Checks are those of `dispatch/request.py`, on views; an array of a store is checked by its shape and dtype.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.arrays.mapped_file import file_part
from gemmlab.arrays.on_gpu import is_device_array
from gemmlab.arrays.on_host import host_view, is_host_array
from gemmlab.core.argument_checks import dtype_error, float32_array
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.request import Operand, Request, checked_target, request, rows_contiguous, same
from gemmlab.dispatch.shadows import packed
from gemmlab.packs import Packed
from gemmlab.pieces.array_identity import same_array, store_place
from gemmlab.pieces.block_sources import ArraySource, Source, StoreSource
from gemmlab.pieces.cpu_limits import Steps
from gemmlab.pieces.piece_run import Matrices


@dataclass(frozen=True, slots=True)
class LargeRequest:
    """A checked call, with its matrices as they are stored."""

    operands: Request
    matrices: Matrices
    turned: tuple[bool, bool]
    """(a, b): true for an operand that is stored as the transpose of op(a) or op(b)."""
    steps: Steps
    in_place: bool
    """True if c is the result itself: the same memory, the same part of a file, or the same array of a store."""


def large_request(call: Call) -> LargeRequest:
    """Check a call and return its matrices, with a new result if the call has no `out`.

    Raises `ArgumentTypeError` and `UsageError` as `gemmlab.gemm` does, and for arrays that lie on a GPU, for stacks of
    matrices, and for a result that shares a part of a file with an operand. Nothing is written before an error.
    """
    found = request(call, operand_view)
    if len(found.shape) != 2 or found.row or found.column or found.batch:
        raise UsageError(
            "gemm: a product in pieces takes matrices of two axes; a and b have "
            f"{found.operands[0].view.ndim} and {found.operands[1].view.ndim}"
        )
    a, turned_a = _operand(call.a, found.left, bool(call.trans_a))
    b, turned_b = _operand(call.b, found.right, bool(call.trans_b))
    c = None if found.addend is None else _addend(call.c, found)
    out = _result(call.out, found)
    in_place = c is not None and _is_result(c, out)
    _require_apart(out, {"a": a, "b": b} | ({} if c is None or in_place else {"c": c}))
    return LargeRequest(
        found, Matrices(a, b, out, c), (turned_a, turned_b), Steps(found.left.strides, found.right.strides), in_place
    )


def operand_view(call: str, name: str, value: Any) -> Operand:
    """Return an operand as a view; for a store's array the view has only the shape.

    Raises `ArgumentTypeError`, and `UsageError` for a packed operand and an array on a GPU.
    """
    if isinstance(value, Packed):
        raise UsageError(f"{call}: {name} is packed; a product in pieces packs by itself")
    if is_device_array(value):
        raise UsageError(
            f"{call}: {name} lies on a GPU; with device or memory_bytes, arrays lie in this machine's memory, in files "
            "or in stores"
        )
    if is_host_array(value):
        value = host_view(call, name, value)
    if not is_stored(value):
        return Operand(float32_array(call, name, value))
    if np.dtype(value.dtype) != np.float32 or not np.dtype(value.dtype).isnative:
        raise dtype_error(call, name, np.dtype(value.dtype))
    if name == "out" and not hasattr(value, "__setitem__"):
        raise ArgumentTypeError(f"{call}: out is {type(value).__qualname__}, which cannot be written to")
    return Operand(packed(tuple(map(int, value.shape))))


def is_stored(value: Any) -> bool:
    """Return whether a value is read by slices: it is not NumPy's, and has a shape, a dtype and indices.

    That is true of arrays of stores, and of other packages' arrays in memory, for which `is_host_array` is true, too.
    """
    return not isinstance(value, np.ndarray | np.generic) and all(
        hasattr(value, name) for name in ("shape", "dtype", "__getitem__")
    )


def _operand(value: Any, view: Any, turned: bool) -> tuple[Source, bool]:
    """Return an operand as it is stored, and whether it is stored as the transpose of op(a) or op(b).

    `turned` is the call's flag of transposition, `view` is op of the operand.
    """
    if is_stored(value) and not is_host_array(value):
        return StoreSource(value), turned
    exchanged = not rows_contiguous(view) and rows_contiguous(view.T)
    return ArraySource(_owner(value), view.T if exchanged else view), exchanged


def _owner(value: Any) -> Any:
    return host_view("gemm", "an operand", value) if is_host_array(value) else value


def _addend(value: Any, found: Request) -> Source:
    if not is_stored(value) or is_host_array(value):
        assert found.addend is not None  # noqa: S101 - the caller has looked
        return ArraySource(_owner(value), found.addend)
    if tuple(value.shape) != found.shape:
        raise UsageError(f"gemm: c of shape {tuple(value.shape)} in a store must have the result's, {found.shape}")
    return StoreSource(value)


def _result(value: Any, found: Request) -> Source:
    if value is None:
        made = np.empty(found.shape, np.float32)
        return ArraySource(made, made)
    view = operand_view("gemm", "out", value).view
    if is_stored(value) and not is_host_array(value):
        if tuple(value.shape) != found.shape:
            raise UsageError(f"gemm: out has shape {tuple(value.shape)}; the result has {found.shape}")
        if _is_read_only(value):
            place = store_place(value)
            raise UsageError(
                f"gemm: out{f' ({place})' if place else ''} is open for reading only; open it with mode 'r+'"
            )
        return StoreSource(value)
    return ArraySource(_owner(value), checked_target(view, found))


def _is_read_only(value: Any) -> bool:
    """Return whether an array of a store says that it cannot be written: Zarr's itself, h5py's by its file's mode."""
    return bool(getattr(value, "read_only", False)) or getattr(getattr(value, "file", None), "mode", None) == "r"


def _is_result(c: Source, out: Source) -> bool:
    """Return whether c is the result itself."""
    if isinstance(c, ArraySource) and isinstance(out, ArraySource):
        if same(c.matrix, out.matrix):
            return True
        parts = file_part(c.matrix), file_part(out.matrix)
        return (
            parts[0] is not None and parts[1] is not None and parts[0].same_file(parts[1])
            and parts[0][1:3] == parts[1][1:3] and c.matrix.strides == out.matrix.strides
        )  # fmt: skip
    return same_array(c.value, out.value)


def _require_apart(out: Source, others: dict[str, Source]) -> None:
    for name, other in others.items():
        if same_array(other.value, out.value):
            raise UsageError(f"gemm: out is {name}; give it an array of its own")
