"""Change of the number of registers a thread that a cubin states."""

from __future__ import annotations

import struct

from gemmlab.core.errors import UsageError
from gemmlab.toolchain import nv_info
from gemmlab.toolchain.elf import read_elf

_HEADERS_AT, _SECTION_BYTES, _INFO_AT = 0x28, 64, 44
_LOW_BITS = (1 << 24) - 1


def with_register_count(cubin: bytes, function: str, count: int, name: str = "cubin") -> bytes:
    """Return the cubin with `count` registers a thread for one function, in every place that states the number.

    Code whose highest register is Rn needs a count of n + 3 (`checking.register_room`); this is not checked here.
    Raises `UsageError`, with `name` for the file, if it is not a cubin with that function, or if the count is not 1 to
    255.
    """
    if not 1 <= count <= 255:
        raise UsageError(f"{name}: a thread has 1 to 255 registers, not {count}")
    elf, data = read_elf(cubin, name), bytearray(cubin)
    headers = struct.unpack_from("<Q", cubin, _HEADERS_AT)[0]
    places = [n for n, section in enumerate(elf.sections) if section.name == f".text.{function}"]
    if not places:
        raise UsageError(f"{name}: no code of {function} in this file")
    for place in places:
        info = elf.sections[place].info
        # In a cubin for sm_90, the section header of the code has 0 there, not the count.
        if info > _LOW_BITS:
            info = info & _LOW_BITS | count << 24
        struct.pack_into("<I", data, headers + _SECTION_BYTES * place + _INFO_AT, info)
    symbols = {n for n, symbol in enumerate(elf.symbols) if symbol.name == function}
    for section in elf.sections:
        if section.name == ".nv.info":
            for at, symbol in nv_info.register_counts(section):
                if symbol in symbols:
                    struct.pack_into("<I", data, section.start + at, count)
    return bytes(data)
