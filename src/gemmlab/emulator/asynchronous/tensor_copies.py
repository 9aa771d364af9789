"""Copies and reductions of boxes of tensors."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.core.tensor_map import BYTES, TiledMap, decode
from gemmlab.emulator.async_calls import REDUCTIONS, Direction
from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.bulk_copies import destinations, shared_place
from gemmlab.emulator.asynchronous.bulk_groups import Store, groups_of
from gemmlab.emulator.asynchronous.combining import combined, number_of
from gemmlab.emulator.asynchronous.copies import send
from gemmlab.emulator.asynchronous.finding import BOUNDS, MISALIGNED, TENSOR_MAP
from gemmlab.emulator.asynchronous.global_memory import places as global_places
from gemmlab.emulator.asynchronous.global_memory import read, read_rows
from gemmlab.emulator.asynchronous.mbarrier_calls import find
from gemmlab.emulator.asynchronous.proxies import begin_read
from gemmlab.emulator.asynchronous.tiles import PLAIN_ALIGNMENT, alignment, box_at, places
from gemmlab.emulator.form import UnsupportedError
from gemmlab.emulator.layout import Status
from gemmlab.emulator.memory_map import Reach

Bytes = npt.NDArray[np.uint8]
MAP_ALIGNMENT = 64
_KINDS = {
    "UINT32": "U32", "INT32": "S32", "UINT64": "U64", "INT64": "S64", "FLOAT16": "F16", "BFLOAT16": "BF16",
    "FLOAT32": "F32", "FLOAT64": "F64",
}  # fmt: skip


@lru_cache(maxsize=256)
def _decoded(data: bytes) -> TiledMap:
    tensor = decode(data)
    tensor.require_valid()
    return tensor


def _tensor(request: Request, reach: Reach, address: int, dimensions: int) -> TiledMap:
    """Read and check a tensor map. The launch ends if it is none that the instruction can use."""
    if address % MAP_ALIGNMENT:
        request.fail(MISALIGNED, f"a tensor map at an address that is no multiple of {MAP_ALIGNMENT}", address)
    try:
        tensor = _decoded(read(request, reach, address, BYTES).tobytes())
    except UsageError as error:
        request.fail(TENSOR_MAP, str(error), address)
        raise AssertionError from error
    if len(tensor.shape) != dimensions:
        request.fail(TENSOR_MAP, f"a copy of {dimensions} dimensions with the map {tensor.describe()}", address)
    _require_emulated(tensor)
    room = request.block.resident.geometry.shared_bytes
    if tensor.nbytes > room:
        request.fail(BOUNDS, f"a box of {tensor.nbytes} bytes; a block has {room}: {tensor.describe()}", address)
    return tensor


def _require_emulated(tensor: TiledMap) -> None:
    """Raise `UnsupportedError` for layouts and types whose results were not compared with a GPU."""
    for what, yes in (
        (f"interleave {tensor.interleave}", tensor.interleave != 0),
        (f"elements of type {tensor.type.name}", tensor.type.tf32 or tensor.type.name.endswith("_FTZ")),
        ("a box with rows shorter than the swizzle", 0 < tensor.copied[0] * tensor.type.nbytes < tensor.swizzle),
    ):
        if yes:
            raise UnsupportedError(f"tensor map {tensor.describe()}: {what}: not emulated")


def _aligned(request: Request, tensor: TiledMap, address: int) -> None:
    if address % PLAIN_ALIGNMENT:
        request.fail(MISALIGNED, f"the shared address of a tensor copy is no multiple of {PLAIN_ALIGNMENT}", address)
    if address % alignment(tensor):
        message = (
            f"the shared address is no multiple of {alignment(tensor)}, where the pattern of swizzle {tensor.swizzle}"
        )
        request.report(MISALIGNED, f"{message} begins; readers that assume this find other elements", address)


def tensor_copy(request: Request, reach: Reach) -> int:
    """Start a copy or reduction of a box."""
    direction, address, shared, mbarrier, blocks, reduction, dimensions = (request.operand(row) for row in range(7))
    tensor = _tensor(request, reach, address, dimensions)
    coordinates = [_signed(request.operand(7 + axis)) for axis in range(dimensions)]
    if direction == Direction.GLOBAL_TO_SHARED:
        data = _load(request, reach, tensor, coordinates)
        for to, barrier in destinations(shared & 0xFFFFFFFF, mbarrier & 0xFFFFFFFF, blocks):
            _aligned(request, tensor, to)
            block, index = shared_place(request, to, tensor.nbytes, "write")
            where = places(tensor, to, index.start)
            send(request, block, find(request, barrier), where, data, (to, tensor.nbytes))
    elif direction == Direction.SHARED_TO_GLOBAL:
        _store(request, reach, tensor, shared & 0xFFFFFFFF, coordinates, reduction)
    return Status.GO


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (value >> 31 << 32)


def _load(request: Request, reach: Reach, tensor: TiledMap, coordinates: list[int]) -> Bytes:
    """Return the box's bytes in the order of its rows, zeros (or NaN) outside the tensor."""
    box = box_at(tensor, coordinates)
    data = np.zeros((len(box.rows), box.row_bytes), np.uint8)
    whole = bool(box.inside.all()) and box.last - box.first == box.row_bytes
    if not whole and tensor.fill == "nan":
        raise UnsupportedError(f"tensor map {tensor.describe()}: fill with NaN: not emulated")
    if box.inside.any() and box.last > box.first:
        rows = box.rows[box.inside] + box.first
        data[box.inside, box.first : box.last] = read_rows(request, reach, rows, box.last - box.first)
    return data.reshape(-1)


def _store(
    request: Request, reach: Reach, tensor: TiledMap, shared: int, coordinates: list[int], reduction: int
) -> None:
    _aligned(request, tensor, shared)
    block, index = shared_place(request, shared, tensor.nbytes, "read")
    box = box_at(tensor, coordinates)
    if reduction:
        name, kind = REDUCTIONS[reduction & 15], _KINDS.get(tensor.type.name, "")
        if not kind:
            request.fail(TENSOR_MAP, f"a reduction of {tensor.type.name}", shared)
        reduction = number_of(name, kind)

    width = box.last - box.first
    there = bool(box.inside.any()) and width > 0
    found = global_places(request, reach, box.rows[box.inside] + box.first, width) if there else None

    def write(data: Bytes) -> None:
        if found is None:
            return
        allocation, at = found
        mine = data.reshape(len(box.rows), box.row_bytes)[box.inside, box.first : box.last]
        old = np.ascontiguousarray(allocation.data[at])
        new = combined(reduction, old.reshape(-1), mine.reshape(-1)).reshape(mine.shape) if reduction else mine
        allocation.data[at] = new
        allocation.valid[at] = 0xFF

    reading = begin_read(request, block, shared, tensor.nbytes)
    where = places(tensor, shared, index.start)
    groups_of(block, request.warp).open.append(Store(request, shared, where, write, reading, request.site))
