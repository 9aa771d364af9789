"""`printf` of a kernel: formats and arguments are read from emulated memory."""

from __future__ import annotations

from functools import partial

from gemmlab.emulator.asynchronous.async_request import Request
from gemmlab.emulator.asynchronous.bulk_copies import OFFSET
from gemmlab.emulator.device_print import MOST_CHARACTERS, formatted
from gemmlab.emulator.launch_layout import LOCAL_WINDOW, SHARED_WINDOW
from gemmlab.emulator.layout import LANES, Status
from gemmlab.emulator.memory_map import Reach


class Printer:
    """The text that one launch has printed: the last `MOST_CHARACTERS` characters of it."""

    def __init__(self, reach: Reach) -> None:
        self.text = ""
        self._reach = reach

    def print(self, request: Request) -> int:
        """Append the formatted text of every lane that executes, the lowest first.

        A lane's result is the number of arguments that its format used.
        """
        templates, arguments = request.column(0), request.column(1)
        for lane in request.lanes:
            read = partial(_bytes_at, request, self._reach, lane)
            text, count = formatted(read, templates[lane], arguments[lane])
            self.text = (self.text + text)[-MOST_CHARACTERS:]
            request.answer(lane, count)
        return Status.GO


def _bytes_at(request: Request, reach: Reach, lane: int, address: int, nbytes: int) -> bytes:
    """Return `nbytes` bytes at a generic address of a lane, fewer if the memory ends before."""
    offset = address & 0xFFFFFFFF
    resident = request.block.resident
    if address >> 32 == LOCAL_WINDOW:
        size = resident.geometry.local_bytes
        start = (request.warp * LANES + lane) * size
        return resident.local[start + offset : start + min(offset + nbytes, size)].tobytes()
    if address >> 32 == SHARED_WINDOW:
        return resident.shared[offset & OFFSET : (offset & OFFSET) + nbytes].tobytes()
    found = reach.find(address)
    return found.data[address - found.address :][:nbytes].tobytes() if found is not None else b""
