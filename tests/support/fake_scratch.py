"""A driver that knows memory of a stream, and what launches used of it: for tests of scratch memory without a GPU."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

from support.fake_driver import FakeModule

_ALIGNED = 256
"""Bytes on which a GPU's memory begins."""


@dataclass
class ScratchDriver(FakeModule):
    """Streams allocate, free and clear memory, and can be captured; each launch finds its tickets at zero."""

    scratch: list[tuple[int, int]] = field(default_factory=list)
    """Workspace and tickets of each launch that has some."""
    capturing: set[int] = field(default_factory=set)
    """Streams that are captured."""
    cleared: list[tuple[int, int, int]] = field(default_factory=list)
    """Address, words and stream of each piece of memory set to zero."""
    lent: dict[int, int] = field(default_factory=dict)
    """Memory that a stream allocated and did not free yet: address and stream."""

    def _call(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        if name == "cuStreamIsCapturing":
            return 0, int(arguments[0] in self.capturing)
        if name == "cuMemAllocAsync":
            start = self.mem_alloc(arguments[0])
            self.lent[start] = arguments[1]
            return 0, start
        if name == "cuMemFreeAsync":
            start, stream = arguments
            if start in self.lent:
                assert self.lent.pop(start) == stream
            return (self.mem_free(start),)
        if name == "cuMemsetD32Async":
            start, value, count, stream = arguments
            assert value == 0
            ctypes.memset(start, 0, 4 * count)
            self.cleared.append((start, count, stream))
            return (0,)
        return super()._call(name, *arguments)

    def mem_alloc(self, nbytes: int) -> int:
        block = ctypes.create_string_buffer(nbytes + _ALIGNED)
        start = -(-ctypes.addressof(block) // _ALIGNED) * _ALIGNED
        ctypes.memset(start, 0xFF, nbytes)
        self.memory[start] = block
        return start

    def note_scratch(self, workspace: int, tickets: int) -> None:
        """Store the scratch memory of a launch, if it has some; its first ticket must be zero."""
        if workspace or tickets:
            self.scratch.append((workspace, tickets))
        if tickets:
            assert ctypes.c_uint32.from_address(tickets).value == 0
