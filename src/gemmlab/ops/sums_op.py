"""Sums along axes of a strided float32 array: one result for each index of the other axes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gemmlab.core.elements import Element
from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT32, FLOAT_BYTES, OVERFLOW, PRECISIONS, UNIT_ROUNDOFF
from gemmlab.ops.op import GBS, LIMITS, Expected, Float32Array, Float64Array, Op, Operand, only_float32
from gemmlab.ops.sizes import parse_sizes
from gemmlab.ops.sums_cases import contract_cases
from gemmlab.ops.sums_problem import MOST_FREE, MOST_TERMS, SumsProblem, middle_axis

__all__ = ["SumsOp", "SumsProblem"]

_FEWEST_ROUNDINGS = 64
"""Least number of roundings in a bound if the caller does not state them, as for a sum of all elements (`ops.reduce`).
"""
_FLOAT64_ROUNDOFF = 2.0**-53
_Kind = TypeVar("_Kind", np.float32, np.float64)
_OPTION = re.compile(r"(?:step([1-9][0-9]{0,8})|ld\+([0-9]{1,9}))\Z")
_FIELDS = ("free", "terms", "contents")


class SumsOp:
    """The operation `sums` (see `gemmlab.ops.op.Op`).

    Sizes are `OUTERxLENGTHxINNER`: an array that is summed along its middle axis. `4096x4096x1` sums rows,
    `1x4096x4096` columns. After colons, `step2` takes every second element, and `ld+4` leaves 4 elements between rows.
    """

    name = "sums"
    unit = GBS
    limit = LIMITS[GBS]
    extents: tuple[str, ...] = ()
    precisions: tuple[str, ...] = PRECISIONS
    usual_sizes: Mapping[str, str] = {}
    file: str | None = ""
    flags: Mapping[str, tuple[int, ...]] = {"across": (0, 1)}
    factors: Mapping[str, str] = {}

    def typed(self, types: Mapping[str, Element]) -> Op:
        """Return the operation itself; `UsageError` for types other than float32."""
        return only_float32(self, types)

    def parse_sizes(self, text: str) -> list[SumsProblem]:
        """Return sums along the middle axis of arrays with these three extents and options (`SumsOp`)."""
        return list(dict.fromkeys(one for part in text.split(",") for one in _sizes(part.strip())))

    def problem_from_json(self, data: Mapping[str, Any]) -> SumsProblem:
        """Return the problem of JSON values from `SumsProblem.to_json`.

        Raises `UsageError` for unknown, missing or malformed fields.
        """
        if unknown := sorted(set(data) - set(_FIELDS)):
            raise UsageError(f"sums problem: unknown field {unknown[0]!r}")
        if missing := [name for name in _FIELDS if name not in data]:
            raise UsageError(f"sums problem: {missing[0]} is missing")
        for name in ("free", "terms"):
            axes = data[name]
            if not isinstance(axes, list) or any(
                not isinstance(axis, list) or any(type(number) is not int for number in axis) for axis in axes
            ):
                raise UsageError(f"sums problem: {name} = {axes!r} is no list of lists of whole numbers")
        if type(data["contents"]) is not str:
            raise UsageError(f"sums problem: contents = {data['contents']!r} is no text")
        free, terms = (tuple(tuple(axis) for axis in data[name]) for name in ("free", "terms"))
        return SumsProblem(free, terms, data["contents"])

    def dot_length(self, problem: SumsProblem) -> int:
        """Return the number of terms of one sum."""
        return problem.length

    def in_layouts(self, problem: SumsProblem, layouts: Sequence[str]) -> list[SumsProblem]:  # noqa: ARG002
        """Return only the problem itself: strides describe every layout."""
        return [problem]

    def flops(self, problem: SumsProblem) -> int:
        """Return one operation for each term of each sum, the first included."""
        return problem.results * problem.length

    def bytes_moved(self, problem: SumsProblem) -> int:
        """Return the bytes if each element in memory is read once and each result is written.

        An axis with step 0 repeats elements, so it adds none.
        """
        steps = [(extent, step) for extent, step, _ in problem.free] + list(problem.terms)
        different = 1
        for extent, step in steps:
            different *= extent if step or not extent else 1
        return FLOAT_BYTES * (different + problem.results)

    def work(self, problem: SumsProblem) -> int:
        """Return the number of bytes moved, as the unit is GB/s."""
        return self.bytes_moved(problem)

    def operands(self, problem: SumsProblem) -> tuple[Operand, ...]:
        """Return `x` and `out`, each a row from its first element to its last, gaps included."""
        span, out = problem.span, problem.out_span
        return (Operand("x", 1, span, max(1, span), "in"), Operand("out", 1, out, max(1, out), "out"))

    def scalars(self, problem: SumsProblem) -> dict[str, Any]:
        """Return extents and steps (in elements) of all axes, padded with axes of one element, and `across`, as int64.

        `n0` to `n3` are extents of the result, `s0` to `s3` their steps in `x`, `o0` to `o3` in `out`; `k0` to `k2`
        are the extents that are summed along, `t0` to `t2` their steps in `x`.
        """
        free = [*problem.free, *[(1, 0, 0)] * (MOST_FREE - len(problem.free))]
        terms = [*problem.terms, *[(1, 0)] * (MOST_TERMS - len(problem.terms))]
        groups = zip("nsokt", (*zip(*free, strict=True), *zip(*terms, strict=True)), strict=True)
        named = {f"{letter}{n}": np.int64(value) for letter, values in groups for n, value in enumerate(values)}
        return {**named, "across": np.int64(problem.across)}

    def fill(self, problem: SumsProblem, rng: np.random.Generator) -> dict[str, Float32Array]:
        """Return data of the kind `problem.contents` for `x`, with NaN in its gaps, and NaN for `out`."""
        x = np.full(problem.span, np.nan, np.float32)
        view = _view(x, problem)
        values = rng.random(view.shape, dtype=np.float32) * np.float32(2) - np.float32(1)
        match problem.contents:
            case "positive":
                values = np.abs(values)
            case "rising":
                # Elements are their indices: a term added twice or not at all shifts a sum by its index.
                values = np.arange(1, values.size + 1, dtype=np.float32).reshape(values.shape)
            case "nan":
                _put(values, rng, np.nan)
            case "infinite":
                _put(values, rng, np.inf)
            case "opposed":
                _put(values, rng, np.inf)
                _put(values, rng, -np.inf)
            case _:
                pass
        view[...] = values
        return {"x": x.reshape(1, -1), "out": np.full((1, problem.out_span), np.nan, np.float32)}

    def reference(
        self, problem: SumsProblem, inputs: Mapping[str, Float32Array], roundings: int | None = None,
        precision: str = FLOAT32,  # noqa: ARG002 - nothing is rounded before it is added
    ) -> dict[str, Expected]:  # fmt: skip
        """Return the results in float64 and their bounds; in the gaps between results NaN with bound 0, as `fill` has.

        The error of a sum is at most `roundings * u * (sum of magnitudes)`; for `roundings` and its default see
        `ReduceOp.reference`. If a partial sum may overflow in some order, the bound is infinite.
        """
        view = _view(inputs["x"].reshape(-1), problem)
        axes = tuple(range(len(problem.free), view.ndim))
        steps = max(_FEWEST_ROUNDINGS, int(problem.length**0.5)) if roundings is None else roundings
        with np.errstate(invalid="ignore"):
            sums = np.asarray(view.sum(axis=axes, dtype=np.float64))
        magnitudes = np.asarray(np.abs(view).sum(axis=axes, dtype=np.float64))
        finite = np.isfinite(magnitudes)
        bounds = (steps * UNIT_ROUNDOFF + problem.length * _FLOAT64_ROUNDOFF) * np.where(finite, magnitudes, 0.0)
        overflows = finite & (magnitudes * (1.0 + steps * UNIT_ROUNDOFF) >= OVERFLOW)
        bounds = np.where(overflows, np.inf, bounds)
        values, bound = np.full(problem.out_span, np.nan), np.zeros(problem.out_span)
        for whole, each in ((values, sums), (bound, bounds)):
            _out_view(whole, problem)[...] = each
        return {"out": Expected(values.reshape(1, -1), bound.reshape(1, -1))}

    def cases(
        self, layouts: Sequence[str], rng: np.random.Generator, scale: str = "quick"  # noqa: ARG002
    ) -> Iterator[SumsProblem]:  # fmt: skip
        """Yield sums along rows, columns and several axes around every edge, with gaps and special values.

        `scale` is `"quick"` or `"full"`; `layouts` is ignored.
        """
        return contract_cases(rng, scale)


def _sizes(part: str) -> list[SumsProblem]:
    pieces = [piece.strip() for piece in part.split(":")]
    first = next((at for at, piece in enumerate(pieces) if at and piece[:1].isalpha()), len(pieces))
    step, gap = 1, 0
    for piece in pieces[first:]:
        option = _OPTION.match(piece)
        if option is None:
            raise UsageError(f"size {part!r}: {piece!r} is no option; options are step2 and ld+4, of any numbers")
        step, gap = (int(option[1]), gap) if option[1] else (step, int(option[2]))
    shapes = parse_sizes(":".join(pieces[:first]), 3)
    return [middle_axis(outer, length, inner, step=step, gap=gap) for outer, length, inner in shapes]


def _view(x: Float32Array, problem: SumsProblem) -> Float32Array:
    """Return the row `x` as an array: axes of the result first, then those that are summed along."""
    return _strided(x, [(extent, step) for extent, step, _ in problem.free] + list(problem.terms))


def _out_view(out: Float64Array, problem: SumsProblem) -> Float64Array:
    return _strided(out, [(extent, step) for extent, _, step in problem.free])


def _strided(x: npt.NDArray[_Kind], axes: Sequence[tuple[int, int]]) -> npt.NDArray[_Kind]:
    shape, strides = [extent for extent, _ in axes], [step * x.itemsize for _, step in axes]
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def _put(x: Float32Array, rng: np.random.Generator, value: float) -> None:
    if x.size:
        x.reshape(-1)[int(rng.integers(x.size))] = value
