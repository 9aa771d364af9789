"""Read the `.nv.info` sections of a cubin: one for the whole file, and one for each function.

A section has attributes one after the other. An attribute is a byte for its format, a byte for its kind, and two bytes:
its value or, for the format `_SIZED`, the length of the data that follow, padded to four bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from gemmlab.toolchain.elf import Section

FRAME_SIZE, STACK_SIZE, REGISTERS = 0x11, 0x12, 0x2F
"""Kinds of attributes in the section of the whole file: bytes of a function's own frame, bytes of its stack, and its
registers. Each attribute has the index of the function's symbol and the value.
"""
UNKNOWN_STACK = 0xFFFFFFFF

_MAX_THREADS, _PARAM_CBANK, _REQUIRED_THREADS = 0x05, 0x0A, 0x10
_PARAM, _PARAM_LARGE, _BARRIERS = 0x17, 0x45, 0x4C
_CLUSTER = 0x3D
_SIZED = 4


@dataclass(frozen=True, slots=True)
class Param:
    """A kernel parameter: offset from the start of the parameters, and size, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """The attributes in a function's own section (`cubin.CubinFunction`); `None`, or `()` for `params`, if absent."""

    params: tuple[Param, ...]
    param_base: int | None
    barriers: int | None
    max_threads: int | None
    block: tuple[int, int, int] | None
    cluster: tuple[int, int, int] | None


def read(section: Section | None) -> FunctionInfo:
    """Return the attributes in a function's own section, all absent if `section` is `None`.

    Raises `struct.error` if they are malformed.
    """
    attributes = list(_attributes(section))
    last = dict(attributes)
    limit, block = (_extent(last.get(which)) for which in (_MAX_THREADS, _REQUIRED_THREADS))
    threads = limit or block
    return FunctionInfo(
        params=tuple(sorted(_params(attributes), key=lambda param: param.offset)),
        param_base=struct.unpack("<IHH", last[_PARAM_CBANK])[1] if _PARAM_CBANK in last else None,
        barriers=last[_BARRIERS][0] if _BARRIERS in last else None,
        max_threads=math.prod(threads) if threads else None,
        block=block,
        cluster=_extent(last.get(_CLUSTER)),
    )


def by_symbol(section: Section | None) -> dict[int, dict[int, int]]:
    """Return symbol index -> kind of attribute -> value, from the whole file's section; empty if it is `None`.

    Raises `struct.error` if it is malformed.
    """
    found: dict[int, dict[int, int]] = {}
    for attribute, payload in _attributes(section):
        if attribute in {FRAME_SIZE, STACK_SIZE, REGISTERS}:
            symbol, value = struct.unpack("<II", payload)
            found.setdefault(symbol, {})[attribute] = value
    return found


def register_counts(section: Section) -> Iterator[tuple[int, int]]:
    """Yield (offset, symbol index) for each number of registers in the whole file's section.

    The offset, in bytes from the section's start, is that of the number itself.
    """
    for attribute, start, _stop in _places(section):
        if attribute == REGISTERS:
            yield start + 4, struct.unpack_from("<I", section.data, start)[0]


def _attributes(section: Section | None) -> Iterator[tuple[int, bytes]]:
    if section is not None:
        for attribute, start, stop in _places(section):
            yield attribute, section.data[start:stop]


def _places(section: Section) -> Iterator[tuple[int, int, int]]:
    data, at = section.data, 0
    while at < len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        start = at + 4
        if form == _SIZED:
            at = start + -(-size // 4) * 4
            if at > len(data):
                raise struct.error(f"attribute {attribute:#x} ends behind its section")
            yield attribute, start, start + size
        else:
            yield attribute, at + 2, start
            at = start


def _params(attributes: list[tuple[int, bytes]]) -> Iterator[Param]:
    for attribute, payload in attributes:
        if attribute == _PARAM:
            _, _, offset, facts = struct.unpack("<IHHI", payload)
            yield Param(offset, facts >> 18)
        elif attribute == _PARAM_LARGE:
            _, _, offset, size, _ = struct.unpack("<IHHHH", payload)
            yield Param(offset, size)


def _extent(payload: bytes | None) -> tuple[int, int, int] | None:
    if payload is None:
        return None
    x, y, z = struct.unpack("<3I", payload)
    return x, y, z
