"""The plan of a product in pieces, for arrays or shapes, also on a GPU that this machine lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.devices.device_name import CPU, DeviceName
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice_values import Choice
from gemmlab.dispatch.piece_plan import PiecePlan
from gemmlab.dispatch.reasons import device_to_explain, look
from gemmlab.dispatch.request import Operand, request, rows_contiguous
from gemmlab.dispatch.shadows import packed
from gemmlab.pieces.block_sources import StoreSource, of_chunks
from gemmlab.pieces.cpu_limits import Steps
from gemmlab.pieces.cut import cut
from gemmlab.pieces.large_product import checked_bytes
from gemmlab.pieces.large_request import is_stored
from gemmlab.pieces.piece_devices import GpuPieces, PieceDevice, piece_device


def explain_pieces(call: Call, device: object, memory_bytes: int) -> Choice:
    """Return the choice for a product in pieces, with its plan. No element is read.

    Raises as `gemmlab.explain_choice` does, `UsageError` for vectors and stacks, and if `memory_bytes` is too small.
    """
    allowed = checked_bytes(memory_bytes) or 0
    large = request(call, _view)
    if len(large.shape) != 2 or large.row or large.column or large.batch:
        raise UsageError("gemm: a product in pieces takes matrices of two axes")
    left, right = large.left, large.right
    turned = [not rows_contiguous(x) and rows_contiguous(x.T) for x in (left, right)]
    (m, n), k = large.shape, left.shape[1]
    a, b = (StoreSource(x) if _stored(x) else None for x in (call.a, call.b))
    frame = PiecePlan(
        m, n, k, max(1, m), max(1, n), by_rows=True, turned=(turned[0], turned[1]), reads=bool(k),
        memory_bytes=allowed, **of_chunks(a, b, (), (turned[0], turned[1])),
    )  # fmt: skip
    steps = Steps(left.strides, right.strides)
    where = device_to_explain(device, call.a, call.b)
    if where is not None and not isinstance(where, int):
        return _planned(GpuPieces(where), call, frame, steps)
    with piece_device(CPU if where is None else DeviceName("cuda", str(where))) as place:
        return _planned(place, call, frame, steps)


def _planned(place: PieceDevice, call: Call, frame: PiecePlan, steps: Steps) -> Choice:
    choice, found, limits = place.prepare(call, frame, (1.0, 0.0), steps)
    plan = cut(found, limits)
    return replace(choice, pieces=plan, workspace_bytes=plan.workspace_bytes)


def _view(call: str, name: str, value: Any) -> Operand:
    if _stored(value):
        return Operand(packed(tuple(map(int, value.shape))))
    return look(call, name, value)


def _stored(value: Any) -> bool:
    return not isinstance(value, tuple | list) and is_stored(value) and not hasattr(value, "__dlpack__")
