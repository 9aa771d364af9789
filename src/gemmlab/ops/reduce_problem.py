"""The description of one reduction: length, operator and contents."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from gemmlab.core.errors import UsageError

OPERATORS = ("sum", "max", "min")
"""Operators of reductions; a kernel gets the index of its operator in this tuple."""
CONTENTS = ("uniform", "positive", "wide", "cancelling", "nan", "infinite", "opposed", "subnormal", "huge", "rising")


@dataclass(frozen=True, slots=True)
class ReduceProblem:
    """The reduction of `n` contiguous elements to one by `operator`.

    `contents`, one of `CONTENTS`, is the kind of data that `ReduceOp.fill` makes. The constructor raises `UsageError`
    for impossible values.
    """

    n: int
    operator: str = "sum"
    contents: str = "uniform"

    def __post_init__(self) -> None:
        if self.n < 0:
            raise UsageError(f"n = {self.n}: lengths must be at least 0")
        for name, known in (("operator", OPERATORS), ("contents", CONTENTS)):
            if getattr(self, name) not in known:
                raise UsageError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}")

    @property
    def label(self) -> str:
        """The length, followed by all values that differ from the defaults."""
        others = [name for name, usual in ((self.operator, "sum"), (self.contents, "uniform")) if name != usual]
        return " ".join([str(self.n), *others])

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name."""
        return asdict(self)
