"""The operation that follows from a user's statement (`ops/operation.py`), in the form that all layers use
(`ops/op.py`).
"""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.elements import ELEMENTS, FLOAT16, FLOAT32, FLOAT64, Element
from gemmlab.core.errors import TimeLimitError, UsageError
from gemmlab.core.precision import SMALLEST_NORMAL
from gemmlab.ops.op import GBS, LIMITS, Contents, Expected, Op, Operand
from gemmlab.ops.operation import Array, Operation
from gemmlab.ops.sizes import parse_sizes

_FLOATS = (FLOAT64, FLOAT32, FLOAT16, ELEMENTS["bfloat16"])


class OperationError(UsageError):
    """A function of a stated operation raised an exception, or returned something that does not fit."""


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
        if (function := self._stated.flops) is not None:
            with self._calling("flops", function, problem):
                return int(_call_with(function, self._numbers(problem)))
        return sum(math.prod(self._shape(array, problem)) for array in self._stated.arrays if array.role != "in")

    def bytes_moved(self, problem: Any) -> int:
        """Return the stated number of bytes; by default those of every array, twice if it is read and written.

        The stated function may also have parameters such as `x_bytes`: bytes of an element of array `x`.
        """
        if (function := self._stated.bytes) is not None:
            sizes = {f"{name}_bytes": kind.nbytes for name, kind in self._types.items()}
            with self._calling("bytes", function, problem):
                return int(_call_with(function, {**self._numbers(problem), **sizes}))
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
                with self._calling(f"fill of {array.name}", array.fill, problem):
                    values = np.asarray(array.fill(rng, shape), np.float64).reshape(shape)
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
            with self._calling("reference", stated.reference, problem):
                found = _by_name(names, _call_with(stated.reference, {**numbers, **arrays}))
                results = {name: self._result_of(name, problem, found[name]) for name in names}
            total = ELEMENTS[precision if precision in self.precisions else self.precisions[0]]
            known = {**numbers, **arrays, **found, **results, "u": total.roundoff}
            bounds = dict[str, Any]()
            if stated.bound is not None:
                with self._calling("bound", stated.bound, problem):
                    found = _by_name(names, _call_with(stated.bound, known))
                    bounds = {name: self._bound_of(name, problem, found[name]) for name in names}
        return {name: self._expected(name, results[name], bounds.get(name)) for name in names}

    def cases(
        self, layouts: Sequence[str], rng: np.random.Generator, scale: str = "quick",  # noqa: ARG002
    ) -> Iterator[Any]:  # fmt: skip
        """Yield every stated shape at every stated scale. `layouts` and `scale` are ignored."""
        for size in self._stated.scales:
            for shape in self._stated.shapes:
                yield self._problem(*shape, scale=size)

    @contextmanager
    def _calling(self, what: str, function: Callable[..., Any], problem: Any) -> Iterator[None]:
        """Raise `OperationError` in place of an exception of the block, which calls the user's `function`.

        The error names the operation, its file if it has one, `what` the function is, its failing line and the problem.
        """
        try:
            yield
        except (MemoryError, TimeLimitError):
            raise
        except Exception as error:
            why = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
            stated_in = f"{self.file}: " if self.file else ""
            raise OperationError(
                f"{stated_in}{what} of operation {self.name} fails at {problem.label}{_line(function, error)}: {why}"
            ) from error

    def _result_of(self, name: str, problem: Any, found: Any) -> npt.NDArray[np.float64]:
        shape = self._shape(self._arrays[name], problem)
        values = np.asarray(found, np.float64)
        if values.shape != shape:
            raise UsageError(f"{name} has shape {values.shape}, not {shape}")
        return values

    def _bound_of(self, name: str, problem: Any, found: Any) -> npt.NDArray[np.float64]:
        return np.broadcast_to(np.asarray(found, np.float64), self._shape(self._arrays[name], problem))

    def _expected(self, name: str, values: npt.NDArray[np.float64], stated: npt.NDArray[np.float64] | None) -> Expected:
        kind = self._types[name]
        if kind.whole:
            values = kind.widen(kind.stored(values))
        least = max(kind.smallest, SMALLEST_NORMAL) if kind.bits else 0.0
        error = np.zeros_like(values) if stated is None else stated + kind.roundoff * np.abs(values) + least
        bound = np.where(np.isfinite(values), error, 0.0)
        rows = (math.prod(values.shape[:-1]), values.shape[-1])
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
        raise UsageError(f"its parameter {lacking[0]!r} is none of {', '.join(values)}")
    return function(**{name: values[name] for name in wanted if name in values})


def _by_name(names: Sequence[str], found: Any) -> Mapping[str, Any]:
    """Return results by name. `found` is a mapping, the only result itself, or the results in the order of `names`.

    Raises `UsageError` if one is missing, or there are too many in order.
    """
    if not isinstance(found, Mapping):
        several = [found] if len(names) == 1 else [*found]
        if len(several) != len(names):
            raise UsageError(f"it returns {len(several)} values for {', '.join(names)}")
        return dict(zip(names, several, strict=True))
    if missing := [name for name in names if name not in found]:
        raise UsageError(f"it returns {', '.join(map(str, found)) or 'nothing'}, without {missing[0]}")
    return found


def _line(function: Callable[..., Any], error: Exception) -> str:
    """Return ` (softmax.py:9)`, the last line that an exception passed in the file of `function`; else empty."""
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" ({Path(file).name}:{lines[-1]})" if lines else ""
