"""Find the operands that hazards are about, by their addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gemmlab.core.hazard import Hazard
from gemmlab.ops.op import Operand


def with_operands(hazards: Iterable[Hazard], operands: Mapping[str, tuple[int, Operand | None]]) -> Iterator[Hazard]:
    """Yield all hazards; those at an address in global memory name their array and, unless they are races, the element
    of an operand.

    `operands` has, by name, the address of each array in global memory, and its shape if it is an operand. Allocations
    lie far apart, so an address out of bounds belongs to the array that begins nearest to it.
    """
    places = sorted((address, name, operand) for name, (address, operand) in operands.items())
    for hazard in hazards:
        address = hazard.address
        if address is None or hazard.space != "global" or not places:
            yield hazard
            continue
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
