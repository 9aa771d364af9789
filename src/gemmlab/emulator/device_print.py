"""`printf` in a kernel: a format and packed arguments become text, as the CUDA runtime formats them."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

_CONVERSION = re.compile(rb"%([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L)?([diouxXcsfFeEgGaAp%n])")
MOST_CHARACTERS = 1 << 20
"""Most characters of printed text that a launch keeps, as the CUDA runtime's buffer has; the oldest are lost."""
Reader = Callable[[int, int], bytes]
"""Type of a function (generic address, number of bytes) that returns the bytes there, fewer at the end of memory."""


class Arguments:
    """Reader of packed variable arguments; each is aligned to its size."""

    def __init__(self, read: Reader, address: int) -> None:
        self._read, self._next = read, address
        self.count = 0

    def take(self, layout: str) -> int | float:
        """Return the next argument; `layout` is a format of Python's `struct`."""
        size = struct.calcsize(layout)
        self._next += -self._next % size
        (value,) = struct.unpack("<" + layout, self._read(self._next, size).ljust(size, b"\0"))
        self._next += size
        self.count += 1
        found: int | float = value
        return found


def formatted(read: Reader, template: int, arguments: int) -> tuple[str, int]:
    """Return the formatted text, and the number of arguments that its conversions used.

    `template` and `arguments` are generic addresses: of the format, and of the first packed argument.
    """
    values = Arguments(read, arguments)
    text = "".join(_pieces(read, _string(read, template), values))
    return text, values.count


def _string(read: Reader, address: int) -> bytes:
    found = b""
    while not (part := read(address + len(found), 64)).count(0):
        if not part:
            return found
        found += part
    return found + part[: part.index(0)]


def _pieces(read: Reader, template: bytes, values: Arguments) -> Iterator[str]:
    last = 0
    for match in _CONVERSION.finditer(template):
        yield template[last : match.start()].decode("utf-8", "replace")
        last = match.end()
        flags, width, precision, size, kind = (part.decode() if part else "" for part in match.groups())
        if kind == "%":
            yield "%"
            continue
        width = str(values.take("i")) if width == "*" else width
        precision = str(values.take("i")) if precision == "*" else precision
        dot = f".{precision}" if match[3] is not None else ""
        yield _converted(read, f"%{flags}{width}{dot}", size, kind, values)
    yield template[last:].decode("utf-8", "replace")


def _converted(read: Reader, start: str, size: str, kind: str, values: Arguments) -> str:
    if kind in "fFeEgG":
        return (start + kind) % values.take("d")
    if kind in "aA":
        text = float(values.take("d")).hex()
        return (start.partition(".")[0] + "s") % (text.upper() if kind == "A" else text)
    if kind == "c":
        return (start + "c") % (int(values.take("i")) & 0xFF)
    if kind == "s":
        return (start + "s") % _string(read, int(values.take("Q"))).decode("utf-8", "replace")
    if kind == "p":
        return (start + "s") % f"0x{int(values.take('Q')):x}"
    if kind == "n":
        values.take("Q")
        return ""
    wide = size in ("l", "ll", "j", "z", "t")
    value = int(values.take(("q" if wide else "i") if kind in "di" else ("Q" if wide else "I")))
    if size in ("h", "hh"):
        bits = 16 if size == "h" else 8
        value &= (1 << bits) - 1
        value -= (value >> (bits - 1) << bits) * (kind in "di")
    return (start + ("d" if kind in "diu" else kind)) % value
