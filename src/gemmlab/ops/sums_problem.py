"""The description of sums along axes of a strided array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gemmlab.core.errors import UsageError

MOST_FREE, MOST_TERMS = 4, 3
"""Most axes of a problem: axes of the result (`free`), and axes that are summed along (`terms`)."""
CONTENTS = ("uniform", "positive", "rising", "nan", "infinite", "opposed")
Free = tuple[int, int, int]
Term = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SumsProblem:
    """Sums of an array along some of its axes.

    Steps are in elements. Steps between results may be negative in a library call; in checks and measurements they are
    at least 0. In `free` and in `terms` the axis with the smallest step comes first. `contents`, one of `CONTENTS`, is
    the kind of data that `SumsOp.fill` makes. The constructor raises `UsageError` for impossible values.
    """

    free: tuple[Free, ...]
    """Axes of the result: extent, step in the array, step in the result."""
    terms: tuple[Term, ...]
    """Axes that are summed along: extent, step in the array."""
    contents: str = "uniform"

    def __post_init__(self) -> None:
        for axes, most, width, name in ((self.free, MOST_FREE, 3, "free"), (self.terms, MOST_TERMS, 2, "terms")):
            if len(axes) > most or any(len(axis) != width or axis[0] < 0 for axis in axes):
                raise UsageError(f"{name} {axes!r}: at most {most} axes of {width} numbers, extents at least 0")
        if self.results and any(extent > 1 and out == 0 for extent, _, out in self.free):
            raise UsageError(f"free {self.free!r}: results overlap")
        if self.contents not in CONTENTS:
            raise UsageError(f"contents is {self.contents!r}; it must be one of {', '.join(CONTENTS)}")

    @property
    def results(self) -> int:
        """The number of sums."""
        return math.prod(extent for extent, *_ in self.free)

    @property
    def length(self) -> int:
        """The number of terms of each sum."""
        return math.prod(extent for extent, _ in self.terms)

    @property
    def across(self) -> bool:
        """True if adjacent elements are terms of one sum: the smallest step is that of an axis in `terms`.

        False if they belong to adjacent sums. Axes of one element or with step 0 are ignored.
        """
        inner = [step for extent, step in self.terms if extent > 1 and step]
        beside = [abs(step) for extent, step, _ in self.free if extent > 1 and step]
        return min(inner, default=math.inf) < min(beside, default=math.inf)

    @property
    def span(self) -> int:
        """Number of elements from the array's first to its last, gaps included."""
        return _span([(extent, step) for extent, step, _ in self.free] + list(self.terms))

    @property
    def out_span(self) -> int:
        """Number of elements from the first result to the last, gaps included."""
        return _span([(extent, step) for extent, _, step in self.free])

    @property
    def label(self) -> str:
        """`OUTERxLENGTHxINNER` for an array that is summed along its middle axis, with ` step2` and ` ld+4` for the
        `step` and `gap` of `middle_axis`; else all axes.

        The kind of contents follows if it is not the default.
        """
        axes = sorted((step, extent) for extent, step in (*((n, s) for n, s, _ in self.free), *self.terms))
        step = max(1, axes[0][0]) if axes else 1
        gap = max(0, axes[1][0] - step * axes[0][1]) if len(axes) > 1 else 0
        for outer, inner in ((1, 1), *((n, 1) for n, *_ in self.free), *((1, n) for n, *_ in self.free),
                             *((o, n) for n, *_ in self.free for o, *_ in self.free)):  # fmt: skip
            if middle_axis(outer, self.length, inner, self.contents, step, gap) == self:
                strides = ([f"step{step}"] if step > 1 else []) + ([f"ld+{gap}"] if gap else [])
                contents = [self.contents] * (self.contents != CONTENTS[0])
                return " ".join([f"{outer}x{self.length}x{inner}", *strides, *contents])
        free, terms = (" ".join(":".join(map(str, axis)) for axis in axes) for axes in (self.free, self.terms))
        return f"terms {terms or 'none'}, results {free or 'one'}, {self.contents}"

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name, tuples as lists."""
        return {"free": [*map(list, self.free)], "terms": [*map(list, self.terms)], "contents": self.contents}


def middle_axis(
    outer: int, length: int, inner: int, contents: str = CONTENTS[0], step: int = 1, gap: int = 0
) -> SumsProblem:  # fmt: skip
    """Return the sums of `x[outer][length][inner]` along its middle axis.

    Adjacent elements are `step` apart in memory. `gap` elements lie behind each run of `inner` elements, or of `length`
    if `inner` is 1.
    """
    term = inner * step + gap if inner != 1 else step
    row = length * term + (gap if inner == 1 else 0)
    free = [(inner, step, 1), (outer, row, inner)]
    return SumsProblem(tuple(axis for axis in free if axis[0] != 1), ((length, term),) * (length != 1), contents)


def _span(axes: Sequence[tuple[int, int]]) -> int:
    return 0 if any(extent == 0 for extent, _ in axes) else 1 + sum((extent - 1) * step for extent, step in axes)
