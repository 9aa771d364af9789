"""One reduction, described."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gemmlab.core.errors import UsageError

OPERATORS = ("sum", "max", "min")
"""Operators in the order of their numbers in kernels."""
CONTENTS = ("uniform", "positive", "wide", "cancelling", "nan", "infinite", "opposed", "subnormal", "huge", "rising")


@dataclass(frozen=True, slots=True)
class ReduceProblem:
    """`n` contiguous elements, combined by `operator` into one. `UsageError` for impossible values.

    `contents` names the kind of data that `ReduceOp.fill` makes.
    """

    n: int
    operator: str = "sum"
    contents: str = "uniform"

    def __post_init__(self) -> None:
        if self.n < 0:
            raise UsageError(f"n = {self.n}: lengths must be at least 0")
        for name, known in (("operator", OPERATORS), ("contents", CONTENTS)):
            if getattr(self, name) not in known:
                raise UsageError(f"{name} {getattr(self, name)!r}: one of {', '.join(known)}")

    @property
    def label(self) -> str:
        """The length, followed by all values that differ from the defaults."""
        others = [name for name, usual in ((self.operator, "sum"), (self.contents, "uniform")) if name != usual]
        return " ".join([str(self.n), *others])

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)
