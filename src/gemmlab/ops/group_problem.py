"""The description of a group: matrix products of different shapes, stored in one layout, at any addresses.

Sizes are written as for products. An extent may be several, one for each shape, with slashes between, and a number
before `*` repeats every shape: `3/17/5x14336x4096:nt`, `12*37/128x37/128x64`. A group of one shape is a batch by
pointers: `64*128`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from gemmlab.core.errors import UsageError
from gemmlab.ops.batch_problem import OPERANDS
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.ops.gemm_sizes import parse_products
from gemmlab.ops.in_rows import Inside

ALIGNED = 128
"""Every matrix begins at a multiple of this many elements, as arrays do for which torch allocates memory."""
MOST_PRODUCTS = 4096
_EACH = re.compile(r"([0-9]{1,4})\s*\*(.*)\Z")
_ONE = GemmOp()


@dataclass(frozen=True, slots=True)
class GroupProblem:
    """A group: every product of `shapes`, each `each` times. alpha is 1 and beta 0.

    The constructor raises `UsageError` for no product, for more than `MOST_PRODUCTS`, and for shapes that differ in
    more than their extents.
    """

    shapes: tuple[GemmProblem, ...]
    each: int = 1

    def __post_init__(self) -> None:
        count = len(self.shapes) * self.each
        if not 1 <= count <= MOST_PRODUCTS:
            raise UsageError(f"a group has 1 to {MOST_PRODUCTS} products, not {count}")
        layouts = {shape.layout for shape in self.shapes}
        if len(layouts) > 1:
            raise UsageError(f"a group has one layout, not {', '.join(sorted(layouts))}")
        for shape in self.shapes:
            if (shape.alpha, shape.beta) != (1.0, 0.0):
                raise UsageError(f"a group has alpha 1 and beta 0, not those of {shape.label}")

    @property
    def products(self) -> tuple[GemmProblem, ...]:
        """All products; those of one shape follow each other."""
        return tuple(shape for shape in self.shapes for _ in range(self.each))

    @property
    def label(self) -> str:
        """The group in the size grammar, with spaces in place of colons."""
        each = f"{self.each}*" if self.each > 1 else ""
        parts = [each + "x".join(_joined([getattr(shape, name) for shape in self.shapes]) for name in "mnk")]
        layout = self.shapes[0].layout
        parts += [layout] if layout != "nn" else []
        for name in (f"ld{operand}" for operand in OPERANDS):
            gaps = [getattr(shape, name) - getattr(shape.with_layout(layout), name) for shape in self.shapes]
            parts += [f"{name}+{_joined(gaps)}"] if any(gaps) else []
        return " ".join(parts)

    @property
    def inside(self) -> tuple[Inside, ...]:
        """All products with the places of their matrices: one row of memory an operand, in which they follow each
        other.
        """
        found, free = list[Inside](), dict.fromkeys(OPERANDS, 0)
        for product in self.products:
            found.append(Inside(product, dict(free)))
            for operand in _ONE.operands(product):
                free[operand.name] += -(-operand.rows * operand.ld // ALIGNED) * ALIGNED
        return tuple(found)

    def words(self, name: str) -> int:
        """Return the number of elements from the first matrix of operand `name` to the end of the last."""
        last = self.inside[-1]
        operand = next(one for one in _ONE.operands(last.product) if one.name == name)
        return last.first[name] + operand.rows * operand.ld

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name."""
        return {"shapes": [shape.to_json() for shape in self.shapes], "each": self.each}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the group of JSON values from `to_json`.

        Raises `UsageError` for unknown, missing or malformed fields.
        """
        if unknown := sorted(set(data) - {"shapes", "each"}):
            raise UsageError(f"group problem: unknown field {unknown[0]!r}")
        shapes, each = data.get("shapes"), data.get("each")
        if not isinstance(shapes, list) or not all(isinstance(one, Mapping) for one in shapes) or type(each) is not int:
            raise UsageError("group problem: shapes or each is missing or of the wrong kind")
        return cls(tuple(map(_ONE.problem_from_json, shapes)), each)


def parse_groups(text: str) -> list[GroupProblem]:
    """Return the groups that a text names, in its order, without repeats. `UsageError` names the malformed part."""
    return list(dict.fromkeys(_group(part.strip()) for part in text.split(",")))


def _group(part: str) -> GroupProblem:
    sizes, colon, options = part.partition(":")
    repeated = _EACH.match(sizes)
    each, sizes = (int(repeated[1]), repeated[2]) if repeated else (1, sizes)
    extents = [piece.split("/") for piece in sizes.lower().split("x")]
    count = max(map(len, extents))
    if any(len(those) not in (1, count) for those in extents):
        raise UsageError(f"size {part!r}: an extent is one number, or one for each of the {count} shapes")
    shapes = list[GemmProblem]()
    for index in range(count):
        one = "x".join(those[index if len(those) > 1 else 0] for those in extents)
        found = parse_products(one + colon + options)
        if len(found) != 1 or found[0].batch > 1:
            raise UsageError(f"size {part!r}: {one}{colon}{options} is not one product")
        shapes.append(found[0].problem)
    return GroupProblem(tuple(shapes), each)


def _joined(extents: list[int]) -> str:
    return str(extents[0]) if len(set(extents)) == 1 else "/".join(map(str, extents))
