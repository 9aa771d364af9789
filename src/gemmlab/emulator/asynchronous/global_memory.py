"""Checked accesses of the asynchronous proxy to ranges of global memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.finding import BOUNDS, UNWRITTEN
from gemmlab.emulator.memory_map import Allocation, Reach

Bytes = npt.NDArray[np.uint8]


def find(request: Request, reach: Reach, address: int, nbytes: int, verb: str) -> tuple[Allocation, int]:
    """Return (allocation with these bytes, their offset in it). The launch ends if they are not all in one."""
    found = reach.find(address)
    offset = address - found.address if found is not None else 0
    if found is None or offset + nbytes > found.nbytes:
        where = f"at byte {offset} of an allocation of {found.nbytes}" if found is not None else "in no allocation"
        request.fail(BOUNDS, f"a bulk {verb} of {nbytes} bytes of global memory {where}", address)
    assert found is not None  # noqa: S101 - `fail` raises
    return found, offset


def read(request: Request, reach: Reach, address: int, nbytes: int) -> Bytes:
    """Return a copy of bytes; report it if nothing has written some of them. The launch ends as in `find`."""
    found, offset = find(request, reach, address, nbytes, "read")
    if nbytes and (found.valid[offset : offset + nbytes] != 0xFF).any():
        request.report(UNWRITTEN, "a bulk copy reads global memory that nothing has written", address)
    return found.data[offset : offset + nbytes].copy()


def read_rows(request: Request, reach: Reach, rows: npt.NDArray[np.int64], nbytes: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of rows of a tensor, an array of rows by `nbytes`; report bytes that nothing has written.

    `rows` has the address of each row. The launch ends if they are not all in one allocation.
    """
    low, high = int(rows.min()), int(rows.max()) + nbytes
    found, offset = find(request, reach, low, high - low, "read")
    index = (rows - low + offset)[:, None] + np.arange(nbytes)
    if (found.valid[index] != 0xFF).any():
        request.report(UNWRITTEN, "a tensor copy reads global memory that nothing has written", low)
    data: Bytes = found.data[index]
    return data


def places(
    request: Request, reach: Reach, rows: npt.NDArray[np.int64], nbytes: int
) -> tuple[Allocation, npt.NDArray[np.int64]]:
    """Return (allocation, array of rows by `nbytes` with the index in it of each byte of a tensor's rows).

    `rows` has the address of each row. The launch ends if they are not all in one allocation.
    """
    low, high = int(rows.min()), int(rows.max()) + nbytes
    found, offset = find(request, reach, low, high - low, "write")
    return found, (rows - low + offset)[:, None] + np.arange(nbytes)
