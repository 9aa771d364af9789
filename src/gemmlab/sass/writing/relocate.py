"""New values for relative targets, attributes and relocations that refer to moved instructions."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from gemmlab.sass.instruction import Instruction
from gemmlab.sass.writing.slots import EncodingError

_SIZED = 4
_OFFSET_LISTS = {
    0x1C: "EXIT", 0x1D: "S2R of the block's index", 0x28: "cooperative groups", 0x31: "warp-wide integer operations",
}  # fmt: skip
"""Attributes of `.nv.info.FUNCTION` that are lists of 32-bit instruction offsets."""
_NOT_MOVED = {0x34: "indirect branches", 0x39: "mbarriers", 0x3E: "system fences"}
"""Attributes that name instructions in a layout that this module does not know."""
_RELATIVE_LOW, _RELATIVE_BITS = 34, 30
_LABELLED = frozenset({"BSSY"})


def moved_word(instruction: Instruction, encoding: int, address: int) -> int:
    """Return the word `encoding` of an instruction, changed for its new byte address; a BSSY keeps its target.

    Raises `EncodingError` for any other instruction with a label that moves.
    """
    labels = [operand for operand in instruction.operands if operand.kind == "label"]
    if not labels or address == instruction.address:
        return encoding
    if instruction.opcode not in _LABELLED:
        raise EncodingError(
            f"{instruction.text!r} at {instruction.address:#06x} cannot be moved: its target is relative"
        )
    mask = (1 << _RELATIVE_BITS) - 1
    offset = (encoding >> _RELATIVE_LOW & mask) + (instruction.address - address) // 4 & mask
    return encoding & ~(mask << _RELATIVE_LOW) | offset << _RELATIVE_LOW


def moved_attributes(data: bytes, moved: Mapping[int, int], name: str) -> bytes:
    """Return a function's `.nv.info` section with new instruction offsets.

    `moved` maps old byte addresses to new ones. Raises `EncodingError` if an instruction moves and an attribute of
    unknown layout (`_NOT_MOVED`) may name it, and `struct.error` if the section is malformed.
    """
    made, at = bytearray(data), 0
    while at < len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != _SIZED:
            continue
        if attribute in _OFFSET_LISTS:
            offsets = struct.unpack_from(f"<{size // 4}I", data, at)
            struct.pack_into(f"<{size // 4}I", made, at, *(moved.get(offset, offset) for offset in offsets))
        elif attribute in _NOT_MOVED and any(old != new for old, new in moved.items()):
            raise EncodingError(f"{name}: the order cannot change: attribute {attribute:#x} ({_NOT_MOVED[attribute]})")
        at += -(-size // 4) * 4
    return bytes(made)


def moved_relocations(data: bytes, entry_bytes: int, moved: Mapping[int, int]) -> bytes:
    """Return a relocation section of the code with offsets changed by `moved` (old -> new byte address).

    `entry_bytes` is 16 (REL) or 24 (RELA).
    """
    made = bytearray(data)
    for at in range(0, len(data), entry_bytes):
        (offset,) = struct.unpack_from("<Q", data, at)
        # An offset may be that of a word within the instruction.
        struct.pack_into("<Q", made, at, moved.get(offset & ~15, offset & ~15) | offset & 15)
    return bytes(made)


def new_addresses(order: Sequence[int]) -> dict[int, int]:
    """Return old byte address -> new byte address; `order` has the old index of each instruction at its new place."""
    return {16 * old: 16 * new for new, old in enumerate(order)}


__all__ = ["moved_attributes", "moved_relocations", "moved_word", "new_addresses"]
