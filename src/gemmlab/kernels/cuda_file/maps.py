"""Tensor maps of a kernel file: type, box and swizzle of each operand that the GPU's copy engine (TMA) loads.

    [maps]
    A = { type = "tfloat32", box = "BM, 32", swizzle = 128 }

`box` has the rows and columns of the stored operand that one copy loads. A kernel's argument of the type `CUtensorMap`
is such a map: 16 words of 64 bits, of which the first is the operand's address.

A map needs an operand that begins on 16 bytes, and rows that are a multiple of 16 bytes apart. With `classes = 4`,
which takes any leading dimension, an operand has four maps, an argument of the type `FourMaps` (`fourth_rows.cuh`): the
map of class r lies over rows r, r + 4, r + 8 and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.core.errors import UsageError
from gemmlab.core.expr import Expression, parse, split
from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.core.tensor_map import BY_NAME, PROMOTIONS, SWIZZLES, ElementType, TiledMap
from gemmlab.kernels.cuda_file.header import HeaderValues
from gemmlab.kernels.names import OpNames

ALIGNMENT = 16
"""Alignment of the base and the rows of a tensor, in bytes."""
CLASSES = ALIGNMENT // FLOAT_BYTES
"""Number of classes of an operand's rows. Row i is in class i % `CLASSES`; the rows of a class begin a multiple of
`ALIGNMENT` apart.
"""
_TYPES = tuple(name.lower() for name, kind in BY_NAME.items() if kind.floating and kind.nbytes == FLOAT_BYTES)
_STORED: Mapping[str, tuple[str, str]] = {
    "a": ("K if TRANS_A else M", "M if TRANS_A else K"),
    "b": ("N if TRANS_B else K", "K if TRANS_B else N"),
    "c": ("M", "N"),
}
"""Expressions for the rows and columns with which each operand of a product is stored."""


@dataclass(frozen=True, slots=True)
class OperandMap:
    """The tensor map over one operand of a product, or its four maps (`classes`)."""

    operand: str
    """Name of the operand, in lower case."""
    type: ElementType
    box: tuple[Expression, Expression]
    """Rows and columns that one copy loads."""
    swizzle: int
    promotion: int
    classes: int = 1
    """Number of maps: 1, or `CLASSES` maps that each lie over every fourth row."""

    @property
    def aligned_rows(self) -> str:
        """The condition, as an expression, that a map over all rows has rows on multiples of `ALIGNMENT`."""
        return f"ld{self.operand} * {FLOAT_BYTES} % {ALIGNMENT} == 0"

    def over(self, address: int, names: Mapping[str, float], row_class: int = 0) -> TiledMap:
        """Return the map over the rows `row_class`, `row_class + classes` and so on of an operand at `address`.

        `names` are the numbers of the problem and the instance. With several classes a map begins on the last multiple
        of `ALIGNMENT` that is not behind its first row, and its columns begin there, too. A class without rows has a
        map over row 0. Raises `UsageError` for a map that the driver would refuse.
        """
        rows, cols = (max(1, _parsed[text].whole(names)) for text in _STORED[self.operand])
        box_rows, box_cols = (extent.whole(names) for extent in self.box)
        row_bytes = FLOAT_BYTES * int(names[f"ld{self.operand}"])
        address += row_class * row_bytes if row_class < rows else 0
        before = address % ALIGNMENT if self.classes > 1 else 0
        found = TiledMap(
            type=self.type, address=address - before,
            shape=(cols + before // FLOAT_BYTES, max(1, -(-(rows - row_class) // self.classes))),
            strides=(row_bytes * self.classes,), box=(box_cols, box_rows),
            element_strides=(1, 1), swizzle=self.swizzle, promotion=self.promotion,
        )  # fmt: skip
        try:
            found.require_valid()
        except UsageError as error:
            raise UsageError(f"{error} ({self.operand.upper()} is {found.describe()})") from None
        return found

    def argument(self, buffer: Any, names: Mapping[str, float]) -> np.void:
        """Return the 128 bytes of each map; `buffer` is memory on a device, or an address as a number."""
        address = int(getattr(buffer, "address", buffer))
        return np.void(b"".join(self.over(address, names, row_class).encode() for row_class in range(self.classes)))


_parsed = {text: parse(text) for pair in _STORED.values() for text in pair}


def read_maps(stated: HeaderValues, names: OpNames, params: Mapping[str, int]) -> tuple[OperandMap, ...]:
    """Return the maps that a file states. `UsageError` names file, line and key."""
    table = stated.get("maps")
    if table is None:
        return ()
    if not isinstance(table, Mapping):
        raise stated.error("maps", f'{table!r} is not a table, as {{ A = {{ box = "BM, 32", swizzle = 128 }} }}')
    if names.op != "gemm":
        raise stated.error("maps", f"tensor maps lie over the operands of gemm, not of {names.op}")
    return tuple(_map(stated, names, params, name, value) for name, value in table.items())


def _map(stated: HeaderValues, names: OpNames, params: Mapping[str, int], name: str, value: Any) -> OperandMap:
    if name.lower() not in _STORED:
        raise stated.error("maps", f"{name} is none of {', '.join(each.upper() for each in _STORED)}", name)
    known = {"type": "float32", "swizzle": 0, "promotion": 0, "classes": 1}
    if not isinstance(value, Mapping) or not isinstance(value.get("box"), str):
        raise stated.error("maps", f'{name} = {value!r} is not a table with box = "ROWS, COLUMNS"', name)
    if unknown := sorted(set(value) - {*known, "box"}):
        raise stated.error("maps", f"{name} has {unknown[0]!r}; a map has box, {', '.join(known)}", name)
    chosen = {**known, **value}
    choices = {"type": _TYPES, "swizzle": SWIZZLES, "promotion": PROMOTIONS, "classes": (1, CLASSES)}
    for key, possible in choices.items():
        if chosen[key] not in possible:
            listed = ", ".join(map(str, possible))
            raise stated.error("maps", f"{name}: {key} is {chosen[key]!r}; there are {listed}", name)
    return OperandMap(
        name.lower(), BY_NAME[str(chosen["type"]).upper()], _box(stated, names, params, name, value["box"]),
        int(chosen["swizzle"]), int(chosen["promotion"]), int(chosen["classes"]),
    )  # fmt: skip


def _box(
    stated: HeaderValues, names: OpNames, params: Mapping[str, int], name: str, text: str
) -> tuple[Expression, Expression]:
    parts = split(text)
    if len(parts) != 2:
        raise stated.error("maps", f"{name}: box is {text!r}, not rows and columns", name)
    try:
        rows, cols = (parse(part) for part in parts)
        for expression in (rows, cols):
            expression.check_names((*names.in_expressions, *params))
    except UsageError as error:
        raise stated.error("maps", f"{name}: {error}", name) from None
    return rows, cols


def check_maps(
    stated: HeaderValues, maps: Sequence[OperandMap], params: Mapping[str, int], layouts: Sequence[str]
) -> None:
    """Raise `UsageError` if the driver would refuse a map in the default configuration `params` and any of the layouts.

    The operands are large ones, so only the box matters.
    """
    for each in maps:
        for layout in layouts:
            flags = {"TRANS_A": int(layout[0] == "t"), "TRANS_B": int(layout[1] == "t")}
            sizes = dict.fromkeys(("M", "N", "K", "lda", "ldb", "ldc"), 1 << 12)
            try:
                each.over(0, {**sizes, **flags, "alpha": 1, "beta": 0, **params})
            except UsageError as error:
                raise stated.error("maps", f"{each.operand.upper()}, layout {layout}: {error}", "box") from None
