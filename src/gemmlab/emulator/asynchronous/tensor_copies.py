"""Tensor copies: copies and reductions of boxes of tensors, by tensor maps."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.core.tensor_map import BYTES, INNERMOST_FIRST, TiledMap, decode
from gemmlab.emulator.async_calls import Direction
from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.bulk_copies import destinations, shared_place
from gemmlab.emulator.asynchronous.bulk_groups import Store, groups_of
from gemmlab.emulator.asynchronous.copies import send
from gemmlab.emulator.asynchronous.finding import BOUNDS, MISALIGNED, TENSOR_MAP
from gemmlab.emulator.asynchronous.global_memory import places as global_places
from gemmlab.emulator.asynchronous.global_memory import read, read_rows
from gemmlab.emulator.asynchronous.mbarrier_calls import find
from gemmlab.emulator.asynchronous.proxies import begin_read, record_swizzle
from gemmlab.emulator.asynchronous.tensor_reductions import reduced, reduction_of
from gemmlab.emulator.asynchronous.tiles import MODES, PLAIN_ALIGNMENT, alignment, box_at, places
from gemmlab.emulator.form import UnsupportedError
from gemmlab.emulator.launch_layout import LOCAL_WINDOW, SHARED_WINDOW
from gemmlab.emulator.layout import Status
from gemmlab.emulator.memory_map import Reach

Bytes = npt.NDArray[np.uint8]
MAP_ALIGNMENT = 64
UNIT = 16
"""Bytes of a unit: a box that is not interleaved begins at a multiple in the first axis; stores write whole units."""
_COPIES = {LOCAL_WINDOW: "local", SHARED_WINDOW: "shared"}
"""Upper half of a generic address -> name of a memory that cannot have a tensor map."""
NAN = 0x7FF7
"""Value of every 16 bits outside a tensor that is filled with NaN, for any type."""


@lru_cache(maxsize=256)
def _decoded(data: bytes) -> TiledMap:
    tensor = decode(data)
    tensor.require_valid()
    return tensor


def _tensor(request: Request, reach: Reach, address: int, dimensions: int) -> TiledMap:
    """Return the tensor map at an address, checked. The launch ends if the instruction cannot use it.

    Raises `UnsupportedError` for layouts that the emulator does not run.
    """
    if address % MAP_ALIGNMENT:
        request.fail(MISALIGNED, f"a tensor map at an address that is no multiple of {MAP_ALIGNMENT}", address)
    if address >> 32 in _COPIES:
        message = f"the tensor map lies in {_COPIES[address >> 32]} memory, where no copy can read it"
        cure = "declare the parameter `const __grid_constant__ CUtensorMap` and pass its address"
        request.fail(TENSOR_MAP, f"{message}: {cure}, or else the compiler copies it", address)
    try:
        tensor = _decoded(read(request, reach, address, BYTES).tobytes())
    except UsageError as error:
        request.fail(TENSOR_MAP, str(error), address)
        raise AssertionError from error
    if len(tensor.shape) != dimensions:
        request.fail(TENSOR_MAP, f"a copy of {dimensions} dimensions with the map {tensor.describe()}", address)
    _require_emulated(tensor)
    room = request.block.resident.geometry.shared_bytes
    if tensor.span > room:
        request.fail(BOUNDS, f"a box of {tensor.span} bytes; a block has {room}: {tensor.describe()}", address)
    return tensor


def _require_emulated(tensor: TiledMap) -> None:
    """Raise `UnsupportedError` for layouts whose results were not compared with a GPU."""
    for what, yes in (
        ("a box of several slices of channels", tensor.interleave and tensor.slices[-2] > 1),
        ("a box with rows shorter than the swizzle", tensor.pitch > tensor.row_bytes),
    ):
        if yes:
            raise UnsupportedError(f"tensor map {tensor.describe()}: the emulator does not run {what}")


def _require_place(request: Request, tensor: TiledMap, coordinates: list[int]) -> None:
    """End the launch if the first coordinate is not aligned: an H200 then reports an illegal instruction."""
    start = coordinates[0] * tensor.type.nbytes
    if not tensor.interleave and start % UNIT:
        message = f"the first coordinate of a tensor copy is {coordinates[0]}, {start} bytes: no multiple of {UNIT}"
        request.fail(MISALIGNED, f"{message}, with the map {tensor.describe()}")


def _aligned(request: Request, tensor: TiledMap, address: int) -> None:
    if address % PLAIN_ALIGNMENT:
        request.fail(MISALIGNED, f"the shared address of a tensor copy is no multiple of {PLAIN_ALIGNMENT}", address)
    # wgmma applies the swizzle to addresses, as the copy does, so it reads the right elements wherever the box begins.
    if address % alignment(tensor) and not request.block.resident.geometry.warpgroups:
        message = (
            f"the shared address is no multiple of {alignment(tensor)}, where the pattern of swizzle {tensor.swizzle}"
        )
        request.report(MISALIGNED, f"{message} begins; readers that assume this find other elements", address)


def tensor_copy(request: Request, reach: Reach) -> int:
    """Execute `Operation.TENSOR`: start a copy or reduction of a box. A prefetch only checks map and coordinates."""
    direction, address, shared, mbarrier, blocks, reduction, dimensions = (request.operand(row) for row in range(7))
    tensor = _tensor(request, reach, address, dimensions)
    coordinates = [_signed(request.operand(7 + axis)) for axis in range(dimensions)]
    _require_place(request, tensor, coordinates)
    if direction == Direction.GLOBAL_TO_SHARED:
        data = _load(request, reach, tensor, coordinates)
        for to, barrier in destinations(shared & 0xFFFFFFFF, mbarrier & 0xFFFFFFFF, blocks):
            _aligned(request, tensor, to)
            block, index = shared_place(request, to, tensor.span, "write")
            where = places(tensor, to, index.start)
            send(
                request, block, find(request, barrier), where, data, (to, tensor.span), what=tensor.describe_box(),
                blocks=blocks,
            )  # fmt: skip
            record_swizzle(block, to, tensor.span, MODES[tensor.swizzle])
    elif direction == Direction.SHARED_TO_GLOBAL:
        _store(request, reach, tensor, shared & 0xFFFFFFFF, coordinates, reduction)
    return Status.GO


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (value >> 31 << 32)


def _load(request: Request, reach: Reach, tensor: TiledMap, coordinates: list[int]) -> Bytes:
    """Return the box's bytes in the order of its rows, zeros or NaN outside the tensor."""
    box = box_at(tensor, coordinates)
    data = np.zeros((len(box.rows), box.row_bytes), np.uint8)
    if tensor.fill == "nan":
        data.view(np.uint16)[:] = NAN
    if box.inside.any() and box.last > box.first:
        rows = box.rows[box.inside] + box.first
        found = read_rows(request, reach, rows, box.last - box.first)
        data[box.inside, box.first : box.last] = rounded(found) if tensor.type.tf32 else found
    return data.reshape(-1)


def rounded(data: Bytes) -> Bytes:
    """Return the bytes of float32 numbers rounded to TF32, to nearest even.

    A NaN becomes 0x7FFFE000; subnormal numbers are not flushed.
    """
    words = np.ascontiguousarray(data).view(np.uint32)
    nearest = (words + np.uint32(0xFFF) + (words >> 13 & 1)) & np.uint32(0xFFFFE000)
    nan = (words & 0x7FFFFFFF) > 0x7F800000
    return np.where(nan, np.uint32(0x7FFFE000), nearest).astype(np.uint32).view(np.uint8)


def _store(
    request: Request, reach: Reach, tensor: TiledMap, shared: int, coordinates: list[int], reduction: int
) -> None:
    _aligned(request, tensor, shared)
    if min(coordinates) < 0:
        message = f"a tensor {'reduction' if reduction else 'store'} that begins before the tensor, at {coordinates}"
        request.report(BOUNDS, f"{message}{INNERMOST_FIRST}: only a load may; the map is {tensor.describe()}", shared)
    block, index = shared_place(request, shared, tensor.span, "read")
    box = box_at(tensor, coordinates)
    try:
        reduction = reduction_of(tensor, reduction)
    except UsageError as error:
        request.fail(TENSOR_MAP, str(error), shared)

    width = box.last - box.first
    there = bool(box.inside.any()) and width > 0
    found = global_places(request, reach, box.rows[box.inside] + box.first, width) if there else None
    # Whole units of 16 bytes are written or reduced, also where the tensor ends inside them.
    more = -width % UNIT

    def write(data: Bytes) -> None:
        if found is None:
            return
        allocation, at = found
        mine = data.reshape(len(box.rows), box.row_bytes)[box.inside, box.first : box.last + more]
        at = at[:, :1] + np.arange(width + more)
        present = at < allocation.nbytes
        if reduction:
            old = allocation.data[np.minimum(at, allocation.nbytes - 1)]
            mine = reduced(tensor, reduction, np.ascontiguousarray(old), np.ascontiguousarray(mine))
        allocation.data[at[present]] = mine[present]
        allocation.valid[at[present]] = 0xFF

    reading = begin_read(request, block, shared, tensor.span)
    where = places(tensor, shared, index.start)
    sent = np.zeros((len(box.rows), box.row_bytes), np.bool_)
    sent[box.inside, box.first : box.last] = True
    store = Store(request, shared, where, write, reading, request.site, sent.reshape(-1))
    groups_of(block, request.warp).open.append(store)
