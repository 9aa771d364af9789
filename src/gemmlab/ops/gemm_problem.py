"""The description of one matrix product: extents, scalars, leading dimensions, layout and contents."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from gemmlab.core.argument_checks import float32_scalar
from gemmlab.core.errors import UsageError

LAYOUTS = ("nn", "nt", "tn", "tt")
CONTENTS = ("uniform", "wide", "special", "subnormal", "huge")
WHOLE = "whole"
"""Kind of contents, for products in other types than float32: whole numbers whose sums are exact."""


@dataclass(frozen=True, slots=True)
class GemmProblem:
    """A product C = alpha op(A) op(B) + beta C of row-major matrices; op(A) is (m, k), op(B) (k, n), C (m, n), in
    elements.

    A is stored (m, k) with `lda >= k`, or, with `trans_a`, (k, m) with `lda >= m`; B likewise. Leading dimensions of 0
    are replaced by the smallest legal ones. alpha and beta are rounded to float32. `contents`, one of `CONTENTS` or
    `WHOLE`, is the kind of data that the operation's `fill` makes. The constructor raises `UsageError` for impossible
    values.
    """

    m: int
    n: int
    k: int
    alpha: float = 1.0
    beta: float = 0.0
    lda: int = 0
    ldb: int = 0
    ldc: int = 0
    trans_a: bool = False
    trans_b: bool = False
    contents: str = "uniform"

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} = {getattr(self, name)}: extents must be at least 0")
        if self.contents not in (*CONTENTS, WHOLE):
            raise UsageError(f"contents is {self.contents!r}; it must be one of {', '.join(CONTENTS)}")
        for name in ("alpha", "beta"):
            object.__setattr__(self, name, float32_scalar(getattr(self, name)))
        for name, row in self._row_lengths().items():
            value = getattr(self, name)
            if value == 0:
                object.__setattr__(self, name, max(1, row))
            elif value < max(1, row):
                raise UsageError(f"{name} = {value} is shorter than a row of {max(1, row)} elements ({self.layout})")

    def _row_lengths(self) -> dict[str, int]:
        return {"lda": self.m if self.trans_a else self.k, "ldb": self.k if self.trans_b else self.n, "ldc": self.n}

    @property
    def layout(self) -> str:
        """`"nn"`, `"nt"`, `"tn"` or `"tt"`: the first letter is for A, the second for B; t means stored transposed."""
        return "nt"[self.trans_a] + "nt"[self.trans_b]

    @property
    def without_product(self) -> bool:
        """True if alpha or k is 0, so that A and B are not read."""
        return self.alpha == 0.0 or self.k == 0

    @property
    def label(self) -> str:
        """`MxNxK`, followed by all values that differ from the defaults."""
        parts = [f"{self.m}x{self.n}x{self.k}"]
        if self.layout != "nn":
            parts.append(self.layout)
        parts += [f"{name}={getattr(self, name):g}" for name, usual in (("alpha", 1.0), ("beta", 0.0))
                  if getattr(self, name) != usual]  # fmt: skip
        parts += [f"{name}={getattr(self, name)}" for name, row in self._row_lengths().items()
                  if getattr(self, name) != max(1, row)]  # fmt: skip
        return " ".join(parts + [self.contents] * (self.contents != "uniform"))

    def with_layout(self, layout: str) -> Self:
        """Return the same product stored in another layout, with the smallest leading dimensions."""
        if layout not in LAYOUTS:
            raise UsageError(f"layout is {layout!r}; it must be one of {', '.join(LAYOUTS)}")
        return replace(self, trans_a=layout[0] == "t", trans_b=layout[1] == "t", lda=0, ldb=0, ldc=0)

    def to_json(self) -> dict[str, Any]:
        """Return all fields. NaN and infinite scalars are text, because JSON numbers cannot represent them."""
        data = asdict(self)
        for name in ("alpha", "beta"):
            if not math.isfinite(data[name]):
                data[name] = str(data[name])
        return data


def size_label(problem: Any) -> str:
    """Return a problem's label for figures that do not depend on values, such as counters.

    It lacks the kind of contents that the label of a matrix product may have.
    """
    label: str = (replace(problem, contents=CONTENTS[0]) if isinstance(problem, GemmProblem) else problem).label
    return label
