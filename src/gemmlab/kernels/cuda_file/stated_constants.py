"""The values that a kernel file's header states for `__constant__` variables, which a host program would set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import UsageError
from gemmlab.core.expr import Expression
from gemmlab.core.program import Config
from gemmlab.core.words import nearest
from gemmlab.kernels.cuda_file.c_types import C_TYPES, c_value, element_of
from gemmlab.kernels.cuda_file.file_items import Item, items_of, macros_of
from gemmlab.kernels.cuda_file.header_facts import Facts
from gemmlab.kernels.cuda_file.signature import Argument, type_text
from gemmlab.kernels.cuda_file.tokens import pieces
from gemmlab.kernels.names import problem_names

_ALIGNED = ("__align__", "alignas")
_STORAGE = ("__constant__", "static", "extern", "inline")
Value = Callable[[Config, Mapping[str, Any]], npt.NDArray[Any]]
"""A function of an instance and `Op.scalars` that returns the numbers of a variable."""


@dataclass(frozen=True, slots=True)
class _Variable:
    type: str
    """The type of its elements, without qualifiers."""
    count: int | None
    """The number of its elements; `None` if the text does not say it as a number."""


def stated_constants(facts: Facts, texts: Iterable[str], type_names: Mapping[str, str]) -> dict[str, Value]:
    """Return the values of the variables that `constants` states, by name; `texts` are those of the file and its
    headers, `type_names` the types that they name.

    `UsageError` names file, line and key for a variable that the texts lack, for one whose type no number has, and for
    another number of elements.
    """
    if not facts.constants:
        return {}
    known = dict(found for text in texts for found in _variables(text))
    return {name: _value(facts, name, values, known, type_names) for name, values in facts.constants.items()}


def _value(
    facts: Facts, name: str, values: Sequence[Expression | float], known: Mapping[str, _Variable],
    type_names: Mapping[str, str],
) -> Value:  # fmt: skip
    variable = known.get(name)
    if variable is None:
        there = nearest(name, known, most=1) if known else "there is none"
        raise facts.stated.error("constants", f"no __constant__ variable {name!r}; {there}", name)
    kind = variable.type
    while kind in type_names:
        kind = type_names[kind]
    if kind not in C_TYPES and element_of(Argument(f"{kind}*", name)) is None:
        raise facts.stated.error("constants", f"{name} is of {variable.type}; only numbers can be stated", name)
    if variable.count not in (None, len(values)):
        size = f"{variable.count} element{'s' if variable.count != 1 else ''}"
        raise facts.stated.error("constants", f"{name} has {size}, not {len(values)}", name)

    def numbers(instance: Config, scalars: Mapping[str, Any]) -> npt.NDArray[Any]:
        names = {**problem_names(scalars), **instance}
        try:
            found = [value(names) if isinstance(value, Expression) else value for value in values]
            return _stored(kind, name, found)
        except UsageError as error:
            raise facts.stated.error("constants", str(error), name) from None

    return numbers


def _stored(kind: str, name: str, values: Sequence[float]) -> npt.NDArray[Any]:
    """Return numbers as elements of a C type. Raises `UsageError` for one that does not fit a type of whole numbers."""
    if kind in C_TYPES:
        return np.array([c_value(Argument(kind, name), value) for value in values])
    element = element_of(Argument(f"{kind}*", name))
    assert element is not None  # noqa: S101 - `_value` has refused other types
    if element.whole:
        limits = np.iinfo(np.dtype(element.name))
        for value in values:
            if not limits.min <= value <= limits.max or value % 1:
                raise UsageError(f"{value} does not fit in '{kind} {name}'")
    return element.stored(np.array(values, np.float64))


def _variables(text: str) -> Iterator[tuple[str, _Variable]]:
    found = list(pieces(text))
    for item in items_of(found, macros_of(found)):
        words = [token.text for token in item.tokens]
        if "__constant__" in words and item.kind in ("variable", "constant"):
            yield from _declared(item)


def _declared(item: Item) -> Iterator[tuple[str, _Variable]]:
    """Yield the variables that a declaration declares."""
    kind = ""
    for part in _declarators([token.text for token in item.tokens]):
        end = next((index for index, word in enumerate(part) if word in ("=", "{", "(")), len(part))
        extents = [after for before, after in pairwise(part[:end]) if before == "["]
        names = part[: part.index("[") if extents else end]
        if names:
            kind = type_text(names[:-1]) or kind
            count = math.prod(map(int, extents)) if all(map(str.isdecimal, extents)) else None
            yield names[-1], _Variable(kind, count)


def _declarators(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the declarators of a declaration, the first one with the type, without storage and alignment."""
    part, depth, aligned = list[str](), 0, False
    for word in words:
        aligned = aligned or word in _ALIGNED
        if word in (",", ";") and not depth:
            yield part
            part = []
        elif not aligned and word not in _STORAGE:
            part.append(word)
        depth += (word in ("(", "[", "{")) - (word in (")", "]", "}"))
        aligned = aligned and (bool(depth) or word in _ALIGNED)
