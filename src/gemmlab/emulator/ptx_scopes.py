"""Registers that PTX declares within braces, as inline assembly does: each pair of braces has names of its own."""

from __future__ import annotations

import re

from gemmlab.emulator.ptx_warpgroups import NAME

_DECLARED = re.compile(r"\.reg\s+(?:\.\w+\s+)+(.*);", re.DOTALL)
_RANGE = re.compile(r"(%?\w+)\s*<\s*(\d+)\s*>")


class Scopes:
    """The braces within a function's body that are open at a place, and the registers that each pair declares."""

    def __init__(self) -> None:
        self._open: list[tuple[int, dict[str, str]]] = []
        self._count = 0

    def cross(self, braces: str) -> None:
        """Open or close a scope for each brace in a text."""
        for brace in braces:
            if brace == "{":
                self._count += 1
                self._open.append((self._count, {}))
            elif brace == "}" and self._open:
                self._open.pop()

    def named_apart(self, statement: str) -> str:
        """Return a statement with a distinct name for each register that the open braces declare.

        The registers that the statement itself declares become known to later calls.
        """
        if not self._open:
            return statement
        declared = _DECLARED.match(statement)
        if declared:
            number, names = self._open[-1]
            names |= {name: f"{name}__{number}" for name in _names(declared[1])}
        return NAME.sub(lambda name: self._distinct(name[0]), statement)

    def _distinct(self, name: str) -> str:
        return next((names[name] for _number, names in reversed(self._open) if name in names), name)


def _names(declared: str) -> list[str]:
    """Return the registers of a declaration such as `a, b<2>`: `a`, `b0`, `b1`."""
    found = []
    for part in map(str.strip, declared.split(",")):
        several = _RANGE.fullmatch(part)
        found += [f"{several[1]}{index}" for index in range(int(several[2]))] if several else [part]
    return found
