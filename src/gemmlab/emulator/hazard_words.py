"""The words and the place of a hazard: messages, source lines, positions in the grid."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gemmlab.core import hazard
from gemmlab.core.words import counted
from gemmlab.emulator import warpgroup_words
from gemmlab.emulator.barriers import NO_SUCH_BARRIER
from gemmlab.emulator.endless_loops import PATIENCE
from gemmlab.emulator.geometry import Geometry
from gemmlab.emulator.image import OUTSIDE, Image
from gemmlab.emulator.instruction_layout import Kind, Space
from gemmlab.emulator.launch_layout import RANK_BITS
from gemmlab.emulator.layout import BARRIERS, LANES
from gemmlab.emulator.memory_map import Reach
from gemmlab.emulator.warp_syncs import NOT_NAMED
from gemmlab.sass.instruction import Instruction

SPACES = {Space.GLOBAL: "global", Space.SHARED: "shared", Space.LOCAL: "local", Space.CONSTANT: "constant"}

_STORES = ("STG", "ST")
_COPIES = frozenset({"UBLKCP", "UBLKRED", "UTMALDG", "STAS", "REDAS"})
_BULK_STORES = ("UBLKCP.G.", "UBLKRED.G.", "UTMASTG", "UTMAREDG")
"""Beginnings of the names of instructions that copy or reduce from shared to global memory. Their thread waits for them
by bulk groups, not by an mbarrier."""


_OF_DESCRIPTORS = frozenset({Kind.OUT_OF_BOUNDS, Kind.ASYNC, Kind.UNWRITTEN})
"""Kinds of events that have a descriptor in `Event.other_block` if a warpgroup multiplication's operand caused them."""


@dataclass(frozen=True, slots=True)
class Event:
    """One recorded hazard event; its fields are those of `instruction_layout.Event`, as `emit_note` writes them."""

    kind: int
    site: int
    other: int
    block: int
    thread: int
    address: int
    extra: int
    other_block: int
    """Number of the other block of a race between blocks; for a warpgroup multiplication's operand in shared memory,
    its descriptor."""


def message(image: Image, geometry: Geometry, memory: Reach, event: Event) -> str:
    kind, extra, address = event.kind, event.extra, event.address
    instruction = instruction_at(image, event.site)
    if kind == Kind.TRAP:
        return _stopped(OUTSIDE.get(address, ""))
    if kind in warpgroup_words.NAMES:
        fellow = position(extra >> 32, geometry.threads)
        return warpgroup_words.message(
            kind, address, extra, fellow, instruction_at(image, event.other).name, event.other_block
        )
    if kind == Kind.CALL:
        return _ASTRAY[extra]
    if kind == Kind.TEXTURE:
        return f"a fetch through {address}, which is no texture object"
    if kind == Kind.BARRIER:
        if extra == NO_SUCH_BARRIER:
            return f"barrier {address}: a block has barriers 0 to {BARRIERS - 1}"
        if extra & 1:
            return "the barrier was passed without threads that had already ended"
        return "a barrier in divergent code: not all threads of the warp reach it together"
    if kind == Kind.SHUFFLE:
        return f"a shuffle reads from lane {address}, which does not take part in it"
    if kind == Kind.WARP_SYNC:
        lanes = lanes_in_words(address)
        if extra == NOT_NAMED:
            return f"{lanes} of the warp takes part and is not in the mask"
        return f"{lanes} of the warp, which the mask names, ended without reaching it"
    width, space = extra & 0xFF, space_of(event)
    verb = "write" if extra & 0x100 else "read"
    by = warpgroup_words.operand(extra)
    word = f" ({warpgroup_words.descriptor(event.other_block)})" if by and kind in _OF_DESCRIPTORS else ""
    what = f"{width}-byte {verb} of {space} memory{by}{word}"
    if kind in {Kind.RACE_BLOCK, Kind.RACE_WARP, Kind.RACE_GRID, Kind.RACE_CLUSTER}:
        return f"{what} ({instruction.name}) and {_fellow(image, geometry, event)}"
    if kind == Kind.OUT_OF_BOUNDS:
        return what + _bounds(geometry, memory, space, address)
    if kind == Kind.ENDED:
        return f"{what} of a block of the cluster that has ended"
    if kind == Kind.MISALIGNED:
        return f"{what} at an address that is no multiple of {width}"
    if kind == Kind.ASYNC:
        return f"{what} that an asynchronous copy has not brought yet: no wait for it came before"
    return f"{what} that nothing has written"


def _fellow(image: Image, geometry: Geometry, event: Event) -> str:
    """Return words for the other access of a race, and for the synchronisation that is missing between the two."""
    instruction = instruction_at(image, event.site)
    there = instruction_at(image, event.other) if event.other >= 0 else None
    name = there.name if there else "?"
    who = f"by thread {position(event.extra >> 32, geometry.threads)}"
    if event.kind in {Kind.RACE_GRID, Kind.RACE_CLUSTER}:
        who += f" of block {position(event.other_block, geometry.grid)}"
    stores = instruction.opcode in _STORES and there is not None and there.opcode in _STORES
    if stores and space_of(event) == "global":
        return f"a write {who} ({name}): {hazard.TWO_WRITES}, and the later one wins; let one thread own each element"
    if event.kind == Kind.RACE_GRID:
        missing = (
            "with nothing between that orders blocks: an atomic or a flag with __threadfence, or the end of a launch"
        )
    elif event.kind == Kind.RACE_CLUSTER:
        missing = (
            "of the cluster with nothing between that orders the blocks: cluster.sync() (barrier.cluster) is missing,"
            " or an mbarrier"
        )
    elif event.kind == Kind.RACE_BLOCK and any(each.startswith(_BULK_STORES) for each in (instruction.name, name)):
        missing = (
            "with nothing between that orders them: the thread that began the store has to wait for its group"
            " (cp.async.bulk.wait_group.read), with a barrier behind for the others"
        )
    elif event.kind == Kind.RACE_BLOCK and _COPIES & {instruction.opcode, there.opcode if there else ""}:
        missing = (
            "with nothing between that orders them: no wait for the phase of its mbarrier that the copy belongs to"
        )
    elif event.kind == Kind.RACE_BLOCK:
        missing = "with no barrier between: __syncthreads() is missing"
    else:
        missing = "with no warp-level synchronisation between: __syncwarp() is missing"
    return f"an access {who} ({name}) {missing}"


def lanes_in_words(mask: int) -> str:
    """Return a lane mask in words: `"lane 3"`, `"lane 16 (and 15 more)"`. At least one bit must be set."""
    lanes = [lane for lane in range(LANES) if mask >> lane & 1]
    return f"lane {lanes[0]}" + (f" (and {len(lanes) - 1} more)" if len(lanes) > 1 else "")


_ASTRAY = {
    Kind.CALLED: "a call to an address that is no function",
    Kind.RETURNED: "a return to an address that is no instruction",
    Kind.JUMPED: "a jump to an address that is no instruction",
    Kind.RAN_ON: "it goes to where no instruction is",
}


def _stopped(called: str) -> str:
    if called == "__assertfail":
        return "an assertion failed"
    return f"it calls {called}, which is not emulated" if called else "the kernel stopped itself"


def _bounds(geometry: Geometry, memory: Reach, space: str, address: int) -> str:
    if space == "shared":
        rank, offset = address >> RANK_BITS, address & (1 << RANK_BITS) - 1
        where = f" at byte {offset - geometry.shared_low} of {geometry.shared_bytes}"
        return f" of {geometry.place_in_cluster(rank)}" if rank >= math.prod(geometry.cluster) else where
    if space == "local":
        return f" at byte {address} of {geometry.local_bytes}"
    if space == "constant":
        return f" at byte {_signed32(address)} of the {geometry.constant_bytes} that __constant__ variables take"
    found = memory.find(address)
    if found is None:
        return ", in no allocation"
    return f" at byte {_signed(address - found.address)} of an allocation of {found.nbytes}"


def _signed(offset: int) -> int:
    return offset if offset < 1 << 35 else offset - (1 << 36)


def _signed32(offset: int) -> int:
    return offset if offset < 1 << 31 else offset - (1 << 32)


def stalled(kind: str, places: tuple[tuple[int, int, int], ...], geometry: Geometry) -> str:
    match kind:
        case hazard.CLUSTER:
            return f"a grid of {geometry.grid} blocks is not made of clusters of {geometry.cluster}: no GPU launches it"
        case "deadlock":
            blocks = {block for block, *_ in places}
            return f"{counted(len(places), 'warp')} of {counted(len(blocks), 'block')} can never go on"
        case "endless loop":
            return "what decides where its warps go is the same again, at the same place: it never ends"
        case hazard.UNFINISHED:
            return f"given up: no block should need so many instructions; if this one does, {PATIENCE} allows more"
        case _:
            return "waited for a block with a higher number, which need not be resident at the same time"


def instruction_at(image: Image, index: int) -> Instruction:
    """Return the instruction at an index; for an index out of range, as damaged code may give, the nearest one."""
    return image.code.instructions[max(0, min(index, len(image.code.instructions) - 1))]


def line_of(image: Image, index: int) -> int:
    if not 0 <= index < len(image.code.instructions):
        return 0
    line = image.code.instructions[index].line
    return line[1] if line else 0


def file_of(image: Image, index: int) -> str:
    """Return the source file of an instruction; empty for an index out of range, and without line information."""
    if not 0 <= index < len(image.code.instructions):
        return ""
    line = image.code.instructions[index].line
    return line[0] if line else ""


def space_of(event: Event) -> str:
    """Return the name of the memory space of an event's access, such as `"shared"`."""
    return SPACES[event.extra >> 16 & 0xFF]


def position(linear: int, extent: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, _z = extent
    return linear % x, linear // x % y, linear // (x * y)
