"""The names of the arrays that hazards are about: operands by their addresses, shared arrays by their declarations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from gemmlab.core.hazard import Hazard
from gemmlab.ops.op import Operand

_SHARED = re.compile(r"^\s*\.shared\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\];", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A `__shared__` array of fixed size, and its place in a block's shared memory in bytes."""

    name: str
    start: int
    nbytes: int


def shared_arrays(ptx: str, nbytes: int) -> tuple[SharedArray, ...]:
    """Return the arrays that a kernel's PTX declares, laid one after the other as ptxas does.

    Empty if they do not fill the `nbytes` of static shared memory exactly: then they lie in another way.
    """
    found, end = list[SharedArray](), 0
    for align, symbol, size in _SHARED.findall(ptx):
        start = -(-end // int(align)) * int(align)
        found.append(SharedArray(_plain(symbol), start, int(size)))
        end = start + int(size)
    return tuple(found) if end == nbytes else ()


def _plain(symbol: str) -> str:
    """Return the name in the source: `As` for `_ZZ4tilePKfE2As`."""
    for length in range(1, len(symbol)):
        name = symbol[-length:]
        if symbol[:-length].endswith(str(length)) and not name[0].isdigit():
            return name
    return symbol


def with_arrays(
    hazards: Iterable[Hazard], operands: Mapping[str, tuple[int, Operand | None]], shared: Iterable[SharedArray] = (),
    shared_start: int = 0,
) -> Iterator[Hazard]:  # fmt: skip
    """Yield hazards with the name of their array, and for an operand the element that its address would be.

    `operands` has, by name, the address of each array in global memory, and its shape if it is an operand.
    `shared_start` is the address at which a block's arrays begin. Allocations lie far apart, so the one that begins
    nearest to an address is meant, whatever overflow led there.
    """
    places = sorted((address, name, operand) for name, (address, operand) in operands.items())
    by_name = {array.name: array for array in shared}
    for hazard in hazards:
        address = hazard.address
        if address is None or hazard.space not in ("global", "shared"):
            yield hazard
        elif hazard.space == "shared":
            offset = (address & 0xFFFFFF) - shared_start
            inside = [a.name for a in by_name.values() if a.start <= offset < a.start + a.nbytes]
            # Behind all of them: an index of the last one is the likeliest to lead there.
            last = max(by_name.values(), key=lambda array: array.start, default=None)
            behind = [last.name] if last is not None and offset >= last.start + last.nbytes else []
            name = hazard.array or next(iter(inside or behind), "")
            yield replace(hazard, array=name)
        elif not places:
            yield hazard
        else:
            start, name, operand = min(places, key=lambda place: abs(address - place[0]))
            where = "" if operand is None or hazard.kind == "race" else f"; {_element(name, address - start, operand)}"
            yield replace(hazard, array=name, message=hazard.message + where)


def _element(name: str, offset: int, operand: Operand) -> str:
    """Return an element in words: `that would be A[1, 0], and A is 1 x 3`."""
    index = offset // operand.element.nbytes
    shape = f"{name} is {operand.rows} x {operand.cols}"
    if operand.ld != operand.cols:
        shape += f" with rows {operand.ld} apart"
    if index < 0:
        return f"that is {-index} elements before the first one of {name}; {shape}"
    row, column = divmod(index, max(1, operand.ld))
    return f"that would be {name}[{row}, {column}], and {shape}"
