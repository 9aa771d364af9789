"""The result of explaining one kernel, or two side by side: their explanations and predicted times."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab.analysis.explanation import Explanation
from gemmlab.analysis.findings import Finding
from gemmlab.analysis.listing.kernel_listing import explained_listing
from gemmlab.analysis.listing.samples import read_samples
from gemmlab.analysis.model.quoted_prediction import QuotedPrediction
from gemmlab.core.errors import UsageError
from gemmlab.core.notebook_view import Display
from gemmlab.core.numerals import plain
from gemmlab.core.tabular import Row, Tabular
from gemmlab.core.words import assignments
from gemmlab.instruments.call_arguments import Sizes, size_text
from gemmlab.instruments.kernel_pictures import drawn
from gemmlab.pages.kernel_page import kernel_page
from gemmlab.pages.page_files import require_place, write
from gemmlab.plots.pictures.drawing import Picture

Quotes = tuple[QuotedPrediction | str, ...]
"""Predicted times, or the reasons why there are none: at the usual large size, then at the requested size, if it is
another one. If the kernel cannot be modelled, or its result is wrong, there is only one reason for both.
"""


@dataclass(frozen=True, slots=True, repr=False)
class ExplainResult(Display, Tabular):
    """The result of `gemmlab.explain`."""

    explanations: tuple[Explanation, ...]
    """One for each kernel."""
    predictions: tuple[Quotes, ...]
    """For each kernel the predicted times, or the reasons why there are none; an empty tuple for a launch, whose
    operation is unknown.
    """

    @property
    def sound(self) -> bool:
        """True if all results were right, and no kernel has a hazard, such as a race or an access out of bounds."""
        return not any(one.subject.hazards or one.subject.wrong for one in self.explanations)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings on the first kernel, the costliest first."""
        return self.explanations[0].findings if self.explanations else ()

    def pictures(self, *names: str, sizes: Sizes | None = None) -> tuple[Picture, ...]:
        """Draw the first kernel's pictures, as `explain --pictures` does: those in `names`, by default all that apply.

        `sizes` is the one size to trace, by default a small one that shows every part of the kernel. Raises
        `UsageError` for an unknown name, a picture that does not apply, and a launch, whose operation is unknown.
        """
        subject = self.explanations[0].subject
        if subject.kernel is None:
            raise UsageError(f"{subject.name}: pictures are drawn of kernels, not of a launch")
        return drawn(subject.kernel, subject.arch, subject.config, size_text(sizes) or "", names)

    def to_html(self, path: str | os.PathLike[str], samples: str | os.PathLike[str] | None = None) -> Path:
        """Write the kernel page, one file without links to others, and return its path.

        Source, PTX and machine code highlight each other, with counts; two kernels stand side by side. `samples` is a
        file of Nsight Compute's samples by instruction (`ncu --page source --csv`) of the first kernel. Raises
        `UsageError` for a file that cannot be written or read.
        """
        out = Path(path)
        require_place(out)
        found = () if samples is None else read_samples(Path(samples))
        listings = [explained_listing(one, samples=() if place else found)
                    for place, one in enumerate(self.explanations)]  # fmt: skip
        write(out, kernel_page(listings))
        return out

    def _line(self) -> str:
        return " | ".join(one._line() for one in self.explanations)  # noqa: SLF001 - our own

    def _repr_html_(self) -> str:
        pairs = zip(self.explanations, self.predictions, strict=True)
        return "".join(one._view(*map(_words, quotes)).html() for one, quotes in pairs)  # noqa: SLF001 - our own

    def rows(self) -> list[Row]:
        """Return a row for each kernel: GPU, size and configuration, the bound on its speed, the predicted time at a
        large size in microseconds, and all its facts.
        """
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


def _words(quote: QuotedPrediction | str) -> str:
    if isinstance(quote, str):
        return f"no time is predicted: {quote}"
    found = quote.prediction
    return (
        f"predicted, not measured: {plain(found.time_us)} us at {quote.size} on {found.gpu}, {plain(quote.speed)} "
        f"{quote.unit}, mostly {found.binds}"
    )


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
