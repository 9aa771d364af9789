"""The `__shared__` variables of a kernel and where they lie, so that messages name places in shared memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gemmlab.toolchain.ptxas_log import body_of

_DECLARED = re.compile(
    r"^\s*(?P<extern>\.extern\s+)?(?:\.\w+\s+)?\.shared\s+\.align\s+(?P<align>\d+)\s+\.[a-z]+(?P<bits>\d+)\s+"
    r"(?P<name>[\w$]+)(?P<array>\[(?P<count>\d*)\])?;",
    re.MULTILINE,
)
_WORD = 8
"""Bytes of an mbarrier."""
_MOST_WORDS = 64
"""Most elements of a variable that is taken for an array of mbarriers; a larger one is taken for other data."""


@dataclass(frozen=True, slots=True)
class SharedVariable:
    """A `__shared__` variable, and its place in bytes from the start of the kernel's own shared memory."""

    name: str
    start: int
    nbytes: int
    """0 for an array whose size the launch gives (`extern __shared__`)."""
    align: int

    def holds(self, offset: int) -> bool:
        """Return whether byte `offset` of the kernel's own shared memory is in the variable.

        An array whose size the launch gives holds all bytes from its start on.
        """
        return self.start <= offset and (not self.nbytes or offset < self.start + self.nbytes)

    def word(self, offset: int) -> str:
        """Return words for the 8-byte word at byte `offset`: `full`, `full[1]`, or `at byte 65,536 of storage`."""
        at = offset - self.start
        if self.nbytes == _WORD:
            return self.name
        return f"{self.name}[{at // _WORD}]" if self.of_words else f"at byte {at:,} of {self.name}"

    @property
    def of_words(self) -> bool:
        """True if the variable may be an array of mbarriers alone: declared with an alignment of 8 bytes, and 1 byte to
        64 words long.
        """
        return self.align == _WORD and 0 < self.nbytes <= _MOST_WORDS * _WORD


def shared_variables(ptx: str, function: str, nbytes: int) -> tuple[SharedVariable, ...]:
    """Return the variables that a kernel's PTX declares, placed one after the other as ptxas does.

    These are the variables that the kernel names, if they fill the `nbytes` of static shared memory exactly, or else
    all that the PTX declares, if these do. Arrays whose size the launch gives come last and take no part in the sum.
    Otherwise the result is empty: the places are unknown.
    """
    declared = [*_DECLARED.finditer(ptx)]
    if not declared:
        return ()
    body = "\n".join(text for _number, text in body_of(ptx, function))
    used = [one for one in declared if re.search(rf"(?<![\w$]){re.escape(one['name'])}(?![\w$])", body)]
    # A function that the kernel calls may use others.
    return _laid(used, nbytes) or _laid(declared, nbytes)


def _laid(declared: Iterable[re.Match[str]], nbytes: int) -> tuple[SharedVariable, ...]:
    every = [*declared]
    found, end = list[SharedVariable](), 0
    for one in every:
        if not one["extern"]:
            size = int(one["bits"]) // 8 * int(one["count"] or 1)
            found.append(_at(one, end, size))
            end = found[-1].start + size
    if end != nbytes:
        return ()
    return (*found, *(_at(one, end, 0) for one in every if one["extern"]))


def _at(one: re.Match[str], end: int, size: int) -> SharedVariable:
    align = int(one["align"])
    return SharedVariable(_plain(one["name"]), -(-end // align) * align, size, align)


def _plain(symbol: str) -> str:
    """Return the name in the source: `As` for `_ZZ4tilePKfE2As`."""
    for length in range(1, len(symbol)):
        name = symbol[-length:]
        if symbol[:-length].endswith(str(length)) and not name[0].isdigit():
            return name
    return symbol


def variable_at(variables: Iterable[SharedVariable], offset: int) -> SharedVariable | None:
    """Return the variable that holds byte `offset` of the kernel's own shared memory; `None` if none does."""
    return next((variable for variable in variables if variable.holds(offset)), None)


def array_at(variables: Iterable[SharedVariable], offset: int) -> str:
    """Return the name of the variable that holds byte `offset` of the kernel's own shared memory; empty if none does.

    For a byte after all variables it is the last variable, because an index past its end most likely led there.
    """
    every = tuple(variables)
    found = variable_at(every, offset)
    if found is None and every:
        last = max(every, key=lambda variable: variable.start)
        found = last if offset >= last.start else None
    return found.name if found else ""
