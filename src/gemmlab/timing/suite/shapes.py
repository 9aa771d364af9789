"""The suite of shapes (`shapes.toml`): products, batches and groups, each with its family and its source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.core.words import shown
from gemmlab.ops.catalog import find_op
from gemmlab.ops.gemm_sizes import parse_products

NAME = "shapes.toml"
GROUP = "group"


@dataclass(frozen=True, slots=True)
class Shape:
    """One product of the suite, one batch, or one group."""

    text: str
    """The problem in the size grammar of its operation."""
    op: str
    """The operation: `"gemm"`, `"batch"` for several products of one shape, `"group"` for those of any shapes."""
    problem: Any
    family: str
    source: str
    """The publication, model or program that the shape comes from."""


@dataclass(frozen=True, slots=True)
class Suite:
    """All shapes in the order of the file, each once."""

    families: Mapping[str, str]
    """Name of a family -> its description."""
    shapes: tuple[Shape, ...]

    def of_family(self, name: str | None) -> tuple[Shape, ...]:
        """Return the shapes of one family, or all for `None`. Raises `UsageError` for an unknown family."""
        if name is None:
            return self.shapes
        if name not in self.families:
            raise UsageError(f"no family {name!r} in the suite; families are {', '.join(self.families)}")
        return tuple(shape for shape in self.shapes if shape.family == name)


@cache
def shipped_suite() -> Suite:
    """Return the suite of shapes that comes with this version of gemmlab."""
    return read_suite(files(__package__).joinpath(NAME).read_text(encoding="utf-8"))


def read_suite(text: str, name: str = NAME) -> Suite:
    """Return the suite that a TOML text describes.

    A table `family` maps names to descriptions. Each `[[group]]` has a `family`, a `source` and `shapes`; its `op` is
    `"group"` if each shape is a group of products. Raises `UsageError`, which names the file as `name`, for anything
    missing, unknown, malformed, empty or written twice.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: {error}") from error
    _require_keys(name, data, {"family": dict, "group": list})
    families = data["family"]
    if wrong := [key for key, value in families.items() if not isinstance(value, str) or not value.strip()]:
        raise UsageError(f"{name}: family {wrong[0]} needs a description")
    shapes = [shape for at, group in enumerate(data["group"], 1) for shape in _group(f"{name}, group {at}", group)]
    first = dict[Any, str]()
    for shape in shapes:
        if shape.family not in families:
            raise UsageError(f"{name}: family {shape.family!r} is not described under [family]")
        if shape.problem in first:
            raise UsageError(f"{name}: {shape.text!r} is the same product as {first[shape.problem]!r}")
        first[shape.problem] = shape.text
    if empty := [family for family in families if all(shape.family != family for shape in shapes)]:
        raise UsageError(f"{name}: family {empty[0]} has no shapes")
    return Suite(families, tuple(shapes))


def _group(where: str, group: Any) -> list[Shape]:
    _require_keys(where, group, {"family": str, "source": str, "shapes": list}, {"op": str})
    if not group["source"].strip():
        raise UsageError(f"{where}: source is empty; it must name the origin of the shapes")
    if group.get("op", GROUP) != GROUP:
        raise UsageError(f"{where}: op is {group['op']!r}; it is {GROUP!r}, or left out")
    found = []
    for text in group["shapes"]:
        op, problem = _problem(where, text, group.get("op"))
        if not find_op(op).flops(problem):
            raise UsageError(f"{where}: {text!r} has nothing to compute")
        found.append(Shape(text, op, problem, group["family"], group["source"]))
    if not found:
        raise UsageError(f"{where}: shapes is empty")
    return found


def _problem(where: str, text: object, op: str | None) -> tuple[str, Any]:
    """Return the operation of a shape and its problem. `op` is `GROUP`; `None` for a product or a batch."""
    if not isinstance(text, str):
        raise UsageError(f'{where}: {shown(text)} is no shape; write it as text, as in "128x4096x4096:nt"')
    try:
        op = op or ("batch" if any(one.batch > 1 for one in parse_products(text)) else "gemm")
        found = find_op(op).parse_sizes(text)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    if len(found) != 1:
        raise UsageError(f"{where}: {text!r} is {len(found)} sizes; write each in separate quotes")
    return op, found[0]


def _require_keys(
    where: str, table: Any, kinds: Mapping[str, type], optional: Mapping[str, type] | None = None
) -> None:
    """Raise `UsageError` unless `table` has all keys of `kinds`, and no others but those of `optional`."""
    if not isinstance(table, dict):
        raise UsageError(f"{where}: {shown(table)} is no table")
    every = {**kinds, **(optional or {})}
    if unknown := sorted(set(table) - set(every)):
        raise UsageError(f"{where}: unknown key {unknown[0]!r}; keys are {', '.join(every)}")
    for key, kind in every.items():
        if (key in kinds or key in table) and not isinstance(table.get(key), kind):
            raise UsageError(f"{where}: {key} is missing or of the wrong kind")
