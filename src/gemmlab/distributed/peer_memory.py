"""Memory on the GPUs of one host that all ranks of a group write: two slots for panels, and flags.

The copy engines write the slots, so a message takes no multiprocessor from a product. Streams wait for flags in
hardware; the host waits for nothing. torch allocates the memory and maps it into all processes (symmetric memory).

The turns of a call use two streams alternately: the blocks of a turn's product begin on multiprocessors that the turn
before has left, while its last blocks still run.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from gemmlab.core.errors import DeviceError, GemmlabError
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.devices.cuda_driver import Driver, open_driver
from gemmlab.distributed.agreement import answered
from gemmlab.distributed.message_group import backend_of

SLOTS = 2
FLAG_BYTES = 4
_NO_MULTICAST = "TORCH_SYMM_MEM_DISABLE_MULTICAST"
"""torch's variable, which it reads whenever it maps memory of other GPUs."""
ARRIVED, READY = 0, 1
"""Kinds of flags. A rank has one of each kind from each rank of the group, itself too."""
_made: WeakKeyDictionary[Any, PeerMemory | None] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A part of a matrix in a GPU's memory: `height` rows of `width` bytes, `pitch` bytes apart."""

    address: int
    pitch: int
    width: int
    height: int


class PeerMemory:
    """The slots and flags of one group of ranks, and the streams for copies and for the product of every other turn.

    Flags are counts of panels over all calls: `ARRIVED` from a rank says how many panels it has sent here, `READY` up
    to which panel it can receive. They are compared as 32-bit numbers that wrap around.
    """

    def __init__(self, group: Any, device: torch.device, driver: Driver) -> None:
        self.ranks, self.own = dist.get_world_size(group), dist.get_rank(group)
        self.count = 0
        """Number of panels of all calls so far, the same on all ranks."""
        self._group, self._device, self._driver = group, device, driver
        self._copies = [torch.cuda.Stream(device, priority=-1) for _ in range(self.ranks)]
        """One stream for the copies to each rank. With a single one, a rank that is not ready would delay copies to
        others.
        """
        self._second, self._behind = torch.cuda.Stream(device), torch.cuda.Stream(device)
        self._last_ready = torch.cuda.Event()
        """Event after the flags that the last `tell_ready` wrote."""
        self._slot_bytes = 0
        self._slots = torch.empty(0, device=device)
        self._addresses: list[int] = []
        self._mappings = dict[str, Any]()
        """Memory of the flags and the slots, with the mappings of all ranks' memory here."""
        self._token = torch.zeros(1, device=device)
        flags, self._flags = self._shared("flags", 2 * self.ranks * FLAG_BYTES)
        flags.zero_()
        torch.cuda.synchronize(device)
        answered(lambda: dist.barrier(group))

    def reserve(self, slot_bytes: int) -> None:
        """Make each slot at least `slot_bytes` large. All ranks call this with the same number. If the slots grow, the
        call first waits for all work of the GPU.
        """
        if slot_bytes <= self._slot_bytes:
            return
        torch.cuda.synchronize(self._device)
        answered(lambda: dist.barrier(self._group))
        self._slots, self._mappings["slots"] = torch.empty(0, device=self._device), None
        self._slot_bytes = 1 << max(20, (slot_bytes - 1).bit_length())
        self._slots, self._addresses = self._shared("slots", SLOTS * self._slot_bytes)

    def slot(self, number: int, shape: tuple[int, int]) -> torch.Tensor:
        """Return this rank's slot for panel `number` as a float32 matrix of `shape`."""
        first = number % SLOTS * self._slot_bytes // FLOAT_BYTES
        return self._slots[first : first + shape[0] * shape[1]].view(shape)

    @contextmanager
    def alternate(self, turn: int, *, after_all: bool) -> Iterator[None]:
        """Make the stream of a turn's product current: the caller's, or a second one. With `after_all` the product
        begins after the one before has ended. After the last product, `join` orders the second stream's work before
        later work of the caller's.
        """
        caller = torch.cuda.current_stream(self._device)
        own, other = (self._second, caller) if turn % 2 else (caller, self._second)
        if after_all:
            own.wait_stream(other)
        with torch.cuda.stream(own):
            yield

    def join(self) -> None:
        """Order the work of the second stream, and the copies of this rank's operand to other ranks, before later work
        of the current stream.
        """
        current = torch.cuda.current_stream(self._device)
        for stream in (self._second, *self._copies):
            current.wait_stream(stream)

    def send(self, rank: int, number: int, offset: int, pitch: int, source: Rectangle) -> None:
        """Copy a rectangle of this GPU into a rank's slot of panel `number`, from byte `offset` on, with `pitch`."""
        copy = self._driver.module.CUDA_MEMCPY2D()
        copy.srcMemoryType = copy.dstMemoryType = self._driver.module.CUmemorytype.CU_MEMORYTYPE_UNIFIED
        copy.srcDevice, copy.srcPitch = source.address, source.pitch
        copy.dstDevice = self._addresses[rank] + number % SLOTS * self._slot_bytes + offset
        copy.dstPitch, copy.WidthInBytes, copy.Height = pitch, source.width, source.height
        self._driver("cuMemcpy2DAsync", copy, self._copies[rank].cuda_stream, what="a panel for another GPU")

    def open(self, count: int, begun: torch.cuda.Event) -> None:
        """Begin a call: after `begun`, and after all panels of earlier calls are multiplied, tell all ranks that panels
        below `count` may be sent.
        """
        for stream in (*self._copies, self._second):
            stream.wait_event(begun)
        here = self._copies[self.own]
        here.wait_event(self._last_ready)
        for rank in range(self.ranks):
            self._tell(READY, rank, count, here)

    def tell_ready(self, count: int) -> None:
        """Tell all ranks that panels below `count` may be sent, after the work that the current stream has now and
        after the flags of the call before.
        """
        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(self._last_ready)
        for rank in range(self.ranks):
            self._tell(READY, rank, count, stream)
        self._last_ready.record(stream)

    def await_ready(self, rank: int, count: int) -> None:
        """Make copies to a rank wait from now on until it can receive the panels below `count`."""
        self._wait(READY, rank, count, self._copies[rank])

    def tell_arrived(self, rank: int, count: int) -> None:
        """Tell a rank, after the copies to it so far, that this rank's parts of the panels below `count` are there."""
        self._tell(ARRIVED, rank, count, self._copies[rank])

    def await_arrived(self, count: int) -> None:
        """Make the current stream wait for all ranks' parts of the panels below `count`."""
        for rank in range(self.ranks):
            self._wait(ARRIVED, rank, count, torch.cuda.current_stream(self._device))

    def meet(self) -> None:
        """Begin a collective operation after the last `tell_ready`. If a rank has ended, torch's time limit for it ends
        this process, whose streams would wait forever.

        It runs after all products, because its kernel would keep a multiprocessor from their blocks.
        """
        with torch.cuda.stream(self._behind):
            self._behind.wait_event(self._last_ready)
            dist.all_reduce(self._token, group=self._group, async_op=True)

    def _tell(self, kind: int, rank: int, count: int, stream: torch.cuda.Stream) -> None:
        address = self._flags[rank] + (kind * self.ranks + self.own) * FLAG_BYTES
        self._driver("cuStreamWriteValue32", stream.cuda_stream, address, count % (1 << 32), 0)

    def _wait(self, kind: int, rank: int, count: int, stream: torch.cuda.Stream) -> None:
        at_least = int(self._driver.module.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ)
        address = self._flags[self.own] + (kind * self.ranks + rank) * FLAG_BYTES
        self._driver("cuStreamWaitValue32", stream.cuda_stream, address, count % (1 << 32), at_least)

    def _shared(self, name: str, nbytes: int) -> tuple[torch.Tensor, list[int]]:
        """Return memory of this GPU, as float32, and the addresses of all ranks' memory in this process."""
        from torch.distributed import _symmetric_memory as symmetric

        memory = symmetric.empty(nbytes // FLOAT_BYTES, dtype=torch.float32, device=self._device)
        with without_multicast():
            handle: Any = answered(lambda: symmetric.rendezvous(memory, self._group))
        everyone = [handle.get_buffer(rank, (memory.numel(),), memory.dtype) for rank in range(self.ranks)]
        self._mappings[name] = memory, handle, everyone
        return memory, [one.data_ptr() for one in everyone]


@contextmanager
def without_multicast() -> Iterator[None]:
    """Keep torch from creating objects for NVLink multicast within this block: copies do not need them, and some hosts
    forbid them.
    """
    before = os.environ.get(_NO_MULTICAST)
    os.environ[_NO_MULTICAST] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NO_MULTICAST]
        else:
            os.environ[_NO_MULTICAST] = before


def peer_memory(group: Any, device: torch.device) -> PeerMemory | None:
    """Return the memory that the ranks of a group share; `None` if they cannot. All ranks of the group call this, and
    get the same answer. The memory is used again for later calls with the same group.

    It needs NCCL, all ranks on one host, GPUs that reach each other's memory and wait for flags in hardware, and
    torch's symmetric memory.
    """
    if group not in _made:
        _made[group] = _new(group, device)
    return _made[group]


def _new(group: Any, device: torch.device) -> PeerMemory | None:
    if device.type != "cuda" or backend_of(group, device) != dist.Backend.NCCL:
        return None
    hosts: list[Any] = [None] * dist.get_world_size(group)
    answered(lambda: dist.all_gather_object(hosts, (socket.gethostname(), _reaches_all(device)), group=group))
    if len({name for name, _ in hosts}) > 1 or not all(reaches for _, reaches in hosts):
        return None
    found: PeerMemory | None = None
    try:
        found = PeerMemory(group, device, open_driver())
    except (ImportError, AttributeError, RuntimeError, GemmlabError):
        # Each version of torch and each host may refuse in its own way; then NCCL sends the panels.
        found = None
    here = torch.tensor([found is not None], dtype=torch.int32, device=device)
    answered(lambda: dist.all_reduce(here, dist.ReduceOp.MIN, group=group))
    return found if here.item() else None


def _reaches_all(device: torch.device) -> bool:
    """Return whether this GPU can access all others that the process has, and waits for flags in hardware."""
    try:
        driver = open_driver()
        waits = driver.attribute("device", "CAN_USE_STREAM_WAIT_VALUE_NOR", device.index)
    except (DeviceError, AttributeError):
        return False
    others = (index for index in range(torch.cuda.device_count()) if index != device.index)
    return bool(waits) and all(torch.cuda.can_device_access_peer(device.index, index) for index in others)
