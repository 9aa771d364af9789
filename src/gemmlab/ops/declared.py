"""The operation that follows from a user's statement (`ops/operation.py`), in the form that all layers use
(`ops/op.py`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, make_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.elements import ELEMENTS, FLOAT16, FLOAT32, FLOAT64, Element
from gemmlab.core.errors import UsageError
from gemmlab.core.precision import SMALLEST_NORMAL
from gemmlab.ops.op import GBS, LIMITS, Contents, Expected, Op, Operand
from gemmlab.ops.operation import Array, Operation
from gemmlab.ops.sizes import parse_sizes

_FLOATS = (FLOAT64, FLOAT32, FLOAT16, ELEMENTS["bfloat16"])


class DeclaredProblem:
    """Base class of the problems of a stated operation. Its fields are extents, scalars and `scale`.

    Uniform contents are multiplied by `scale`.
    """

    extents: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The extents, followed by all values that differ from the defaults."""
        members: list[Any] = [*fields(self)]  # type: ignore[arg-type]
        values = [getattr(self, one.name) for one in members if one.name in self.extents]
        others = [
            f"{one.name}={getattr(self, one.name):g}" for one in members
            if one.name not in self.extents and getattr(self, one.name) != one.default
        ]  # fmt: skip
        return " ".join(["x".join(map(str, values)), *others])

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]


class DeclaredOp:
    """A stated operation as an `Op` (see `gemmlab.ops.op`), for operands of `types`, by default of their stated types
    or float32.

    `file` is the Python file that states it; `None` if it was stated in this process only.
    """

    flags: Mapping[str, tuple[int, ...]] = {}
    factors: Mapping[str, str] = {}

    def __init__(self, stated: Operation, types: Mapping[str, Element] | None = None, file: str | None = None) -> None:
        self._stated, self.file = stated, file
        self._types = {array.name: _type(array, types or {}) for array in stated.arrays}
        self._arrays = {array.name: array for array in stated.arrays}
        usual = {array.name: _type(array, {}) for array in stated.arrays}
        names = [kind.name for kind in self._types.values()]
        of_types = names[0] if len(set(names)) == 1 else ",".join(names)
        self.name = stated.name if usual == self._types else f"{stated.name}:{of_types}"
        self.unit, self.extents = stated.unit, stated.extents
        self.limit = LIMITS[GBS] if stated.unit == GBS else ""
        results = [self._types[array.name] for array in stated.arrays if array.role != "in"]
        first = max(results, key=lambda kind: kind.roundoff)
        of_floats = (first, *_FLOATS) if not first.whole else (first,)
        self.precisions = tuple(dict.fromkeys(kind.name for kind in of_floats))
        largest = "x".join(map(str, max(stated.shapes, key=math.prod)))
        count = stated.count or largest
        self.usual_sizes = {"bench": stated.bench or largest, "count": count, "trace": count}
        values: list[Any] = [(name, int) for name in stated.extents]
        values += [(name, type(value), value) for name, value in {**stated.scalars, "scale": stated.scales[0]}.items()]
        self._problem = make_dataclass(
            "Problem", values, frozen=True, slots=True, bases=(DeclaredProblem,), namespace={"extents": stated.extents}
        )  # fmt: skip

    def typed(self, types: Mapping[str, Element]) -> Op:
        """Return the operation for operands of these types; `UsageError` for an array that is stated with another
        type.
        """
        return DeclaredOp(self._stated, types, self.file)

    def parse_sizes(self, text: str) -> list[Any]:
        """Return problems of these sizes with the stated scalars and the first of the stated scales."""
        return [self._problem(*shape) for shape in parse_sizes(text, len(self.extents))]

    def problem_from_json(self, data: Mapping[str, Any]) -> Any:
        """Return the problem of JSON values from `DeclaredProblem.to_json`.

        Raises `UsageError` for unknown or malformed fields, or missing extents.
        """
        known = {one.name for one in fields(self._problem)}
        if {*data} - known or {*self.extents} - {*data}:
            raise UsageError(f"{self.name} problem: the fields are {', '.join(sorted(known))}, not {', '.join(data)}")
        if wrong := [name for name, value in data.items() if type(value) not in (int, float)]:
            raise UsageError(f"{self.name} problem: {wrong[0]} = {data[wrong[0]]!r} is of the wrong kind")
        return self._problem(**data)

    def dot_length(self, problem: Any) -> int:  # noqa: ARG002
        """Return 1: the errors of a stated operation are not divided by a number of terms."""
        return 1

    def in_layouts(self, problem: Any, layouts: Sequence[str]) -> list[Any]:  # noqa: ARG002
        """Return the problem alone: a stated operation has no layouts."""
        return [problem]

    def flops(self, problem: Any) -> int:
        """Return the stated number of operations; by default one for each element of a result."""
        if self._stated.flops is not None:
            return int(_call_with(self._stated.flops, self._numbers(problem)))
        return sum(math.prod(self._shape(array, problem)) for array in self._stated.arrays if array.role != "in")

    def bytes_moved(self, problem: Any) -> int:
        """Return the stated number of bytes; by default those of every array, twice if it is read and written.

        The stated function may also have parameters such as `x_bytes`: bytes of an element of array `x`.
        """
        if self._stated.bytes is not None:
            sizes = {f"{name}_bytes": kind.nbytes for name, kind in self._types.items()}
            return int(_call_with(self._stated.bytes, {**self._numbers(problem), **sizes}))
        return sum(
            self._types[array.name].nbytes * math.prod(self._shape(array, problem)) * (1 + (array.role == "inout"))
            for array in self._stated.arrays
        )

    def work(self, problem: Any) -> int:
        """Return the number of bytes if the unit is GB/s, else of operations."""
        return self.bytes_moved(problem) if self.unit == GBS else self.flops(problem)

    def operands(self, problem: Any) -> tuple[Operand, ...]:
        """Return each array as a matrix without gaps: its last axis is a row, all others together are the rows."""
        found = []
        for array in self._stated.arrays:
            *outer, cols = self._shape(array, problem)
            rows = math.prod(outer)
            found.append(Operand(array.name, rows, cols, max(1, cols), array.role, self._types[array.name]))
        return tuple(found)

    def scalars(self, problem: Any) -> dict[str, Any]:
        """Return extents and scalars that are `int` as int64, other scalars as float32."""
        numbers = self._numbers(problem)
        return {name: np.int64(value) if isinstance(value, int) else np.float32(value)
                for name, value in numbers.items()}  # fmt: skip

    def fill(self, problem: Any, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        """Return the stated or uniform contents of arrays that are read; others hold `Element.filler`, such as NaN."""
        found = {}
        for operand in self.operands(problem):
            array, kind = self._arrays[operand.name], operand.element
            rows = (operand.rows, operand.cols)
            if array.role == "out":
                found[operand.name] = kind.filler(rows)
                continue
            shape = self._shape(array, problem)
            if array.fill is not None:
                values = np.asarray(array.fill(rng, shape), np.float64)
            elif kind.whole:
                limits = np.iinfo(np.dtype(kind.name))
                values = rng.integers(limits.min, limits.max, shape, endpoint=True).astype(np.float64)
            else:
                values = (rng.random(shape) * 2.0 - 1.0) * problem.scale
            found[operand.name] = kind.stored(values.reshape(rows))
        return found

    def reference(
        self, problem: Any, inputs: Contents, roundings: int | None = None, precision: str = "",  # noqa: ARG002
    ) -> dict[str, Expected]:  # fmt: skip
        """Return the stated results in float64, and the stated bounds plus the error of rounding to the result's type.

        `precision` is the type whose roundoff the bound gets as `u`: the first of `precisions` if it is none of them.
        `roundings` is ignored. The bound is 0 where a result is not finite, and everywhere if no bound is stated.
        """
        stated, numbers = self._stated, self._numbers(problem)
        arrays = {
            name: self._types[name].widen(stored).reshape(self._shape(self._arrays[name], problem))
            for name, stored in inputs.items() if self._arrays[name].role != "out"
        }  # fmt: skip
        names = [array.name for array in stated.arrays if array.role != "in"]
        with np.errstate(all="ignore"):
            results = _by_name(names, _call_with(stated.reference, {**numbers, **arrays}))
            total = ELEMENTS[precision if precision in self.precisions else self.precisions[0]]
            known = {**numbers, **arrays, **results, "u": total.roundoff}
            bounds = None if stated.bound is None else _by_name(names, _call_with(stated.bound, known))
        return {name: self._expected(name, problem, results[name], bounds) for name in names}

    def cases(
        self, layouts: Sequence[str], rng: np.random.Generator, scale: str = "quick",  # noqa: ARG002
    ) -> Iterator[Any]:  # fmt: skip
        """Yield every stated shape at every stated scale. `layouts` and `scale` are ignored."""
        for size in self._stated.scales:
            for shape in self._stated.shapes:
                yield self._problem(*shape, scale=size)

    def _expected(self, name: str, problem: Any, result: Any, bounds: Mapping[str, Any] | None) -> Expected:
        shape, kind = self._shape(self._arrays[name], problem), self._types[name]
        values = np.asarray(result, np.float64)
        if values.shape != shape:
            raise UsageError(f"operation {self.name}: the reference of {name} has shape {values.shape}, not {shape}")
        if kind.whole:
            values = kind.widen(kind.stored(values))
        least = max(kind.smallest, SMALLEST_NORMAL) if kind.bits else 0.0
        error = 0.0 if bounds is None else bounds[name] + kind.roundoff * np.abs(values) + least
        bound = np.where(np.isfinite(values), np.broadcast_to(error, shape), 0.0)
        rows = (math.prod(shape[:-1]), shape[-1])
        return Expected(values.reshape(rows), bound.reshape(rows))

    def _shape(self, array: Array, problem: Any) -> tuple[int, ...]:
        return tuple(getattr(problem, extent) if isinstance(extent, str) else extent for extent in array.shape)

    def _numbers(self, problem: Any) -> dict[str, Any]:
        return {name: getattr(problem, name) for name in (*self.extents, *self._stated.scalars)}


def _type(array: Array, types: Mapping[str, Element]) -> Element:
    found = types.get(array.name)
    if not array.type:
        return found or FLOAT32
    if found is not None and found.name != array.type:
        raise UsageError(f"{array.name} is of {found.name}; the operation has it in {array.type}")
    return ELEMENTS[array.type]


def _call_with(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call a function with those of `values` that its parameters name; with all, unchecked, if it has a `**` parameter.

    Raises `UsageError` if it has no `**` parameter and `values` lacks one of its parameters that has no default.
    """
    wanted = inspect.signature(function).parameters
    if any(one.kind is one.VAR_KEYWORD for one in wanted.values()):
        return function(**values)
    lacking = [name for name, one in wanted.items() if name not in values and one.default is one.empty]
    if lacking:
        raise UsageError(f"{function.__name__}: {lacking[0]!r} is none of {', '.join(values)}")
    return function(**{name: values[name] for name in wanted if name in values})


def _by_name(names: Sequence[str], found: Any) -> Mapping[str, Any]:
    """Return results by name. `found` is a mapping, the only result itself, or the results in the order of `names`."""
    if isinstance(found, Mapping):
        return found
    if len(names) == 1:
        return {names[0]: found}
    return dict(zip(names, found, strict=True))
