"""The result of `gemmlab.tune`: the outcome of the search at each size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gemmlab.core.notebook_view import Display
from gemmlab.core.numerals import duration
from gemmlab.core.tabular import Row, Tabular
from gemmlab.core.words import assignments
from gemmlab.tuning.session import Tuning


@dataclass(frozen=True, slots=True, repr=False)
class TuneResult(Display, Tabular):
    """The result of `gemmlab.tune`."""

    tunings: tuple[Tuning, ...]
    """The outcome of each size."""

    @property
    def best(self) -> dict[str, int]:
        """The best configuration at the first size, for `config=` of other calls."""
        return dict(self.tunings[0].best.config)

    def rows(self) -> list[Row]:
        """Return a row for each configuration with a measured or predicted time in microseconds, the fastest first at
        each size.
        """
        return [
            {
                "kernel": found.kernel, "size": found.size, "device": found.device, "predicted": found.predicted,
                **row.config, "us": row.us, "ratio": row.us / found.best.us, "turns": row.turns, **row.facts,
            }
            for found in self.tunings
            for row in found.rows
        ]  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {"tunings": [found.to_json() for found in self.tunings]}

    def _line(self) -> str:
        return "; ".join(str(self).splitlines())

    def __str__(self) -> str:
        """Return the best configuration of each size in words."""
        lines = []
        for found in self.tunings:
            how = "predicted" if found.predicted else "measured"
            best = f"{assignments(found.best.config)}, {duration(found.best.us)} {how}"
            tried = f"{found.tried} of {found.legal} configurations tried"
            lines.append(f"{found.kernel} at {found.size} on {found.device}: {best}, {tried}")
        return "\n".join(lines)
