"""The result of explaining one kernel, or two side by side: their explanations and predicted times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gemmlab.analysis.explanation import Explanation
from gemmlab.analysis.findings import Finding
from gemmlab.analysis.model.quoted_prediction import QuotedPrediction
from gemmlab.core.tabular import Row, Tabular
from gemmlab.core.words import assignments

Quotes = tuple[QuotedPrediction | str, ...]
"""Predicted times, or why there is none: at the usual large size, then at the size that was asked for."""


@dataclass(frozen=True, slots=True, repr=False)
class ExplainResult(Tabular):
    """The result of `gemmlab.explain`."""

    explanations: tuple[Explanation, ...]
    """One for each kernel."""
    predictions: tuple[Quotes, ...]
    """For each kernel the predicted times, or why there is none; empty for a launch of any code."""

    @property
    def sound(self) -> bool:
        """True if all results were right, and no kernel did what it must not (a race, an access out of bounds)."""
        return not any(one.subject.hazards or one.subject.wrong for one in self.explanations)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings on the first kernel, the costliest first."""
        return self.explanations[0].findings if self.explanations else ()

    def rows(self) -> list[Row]:
        """Return a row for each kernel: what it was explained for, its bound, its predicted time, all its facts."""
        return [_row(*pair) for pair in zip(self.explanations, self.predictions, strict=True)]

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "kernels": [
                {**one.to_json(), **_predicted_json(quotes)}
                for one, quotes in zip(self.explanations, self.predictions, strict=True)
            ]
        }

    def __str__(self) -> str:
        """Return hazards, findings and bounds in words."""
        return "\n\n".join(map(str, self.explanations))


def _row(one: Explanation, quotes: Quotes) -> Row:
    subject, quote = one.subject, quotes[0] if quotes else None
    predicted = quote if isinstance(quote, QuotedPrediction) else None
    return {
        "kernel": subject.name, "config": assignments(subject.config), "arch": subject.arch,
        "gpu": subject.model.name, "size": subject.size.label, "hazards": len(subject.hazards),
        "wrong": bool(subject.wrong), "bound": one.roofline.bound, "bound_by": one.roofline.bound_by,
        "unit": subject.unit, "predicted_size": predicted and predicted.size,
        "predicted_us": predicted and predicted.prediction.time_us, "predicted_speed": predicted and predicted.speed,
        "findings": "; ".join(finding.key for finding in one.findings),
        **{name: float(value) for name, value in one.facts.items()},
    }  # fmt: skip


def _predicted_json(quotes: Sequence[QuotedPrediction | str]) -> dict[str, Any]:
    found = [quote if isinstance(quote, str) else quote.to_json() for quote in quotes]
    return dict(zip(("predicted", "predicted_at_size"), found, strict=False))
