"""The result of a `%%cuda` cell: its machine code, its check, its explanation."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.core.notebook_view import Display, View
from gemmlab.core.program import Artifact
from gemmlab.instruments.check_result import CheckResult
from gemmlab.instruments.explain_result import ExplainResult
from gemmlab.launching import Launched


@dataclass(frozen=True, slots=True, repr=False)
class CellResult(Display):
    """The result of a `%%cuda` cell. Parts that were not requested, or are impossible for the cell, are `None` or
    empty.
    """

    artifacts: tuple[Artifact, ...] = ()
    """Machine code of the named kernel, or of every kernel that is no template, for a cell that is only compiled."""
    check: CheckResult | None = None
    explanation: ExplainResult | None = None
    launched: Launched | None = None
    """The launch, for a cell with arrays in --args or with --launch; `launched.outputs` are its arrays."""
    note: str = ""
    """A hint for a cell that is only compiled."""

    @property
    def _parts(self) -> tuple[Display, ...]:
        found = (*self.artifacts, self.check, self.launched, self.explanation)
        return tuple(part for part in found if part is not None)

    def _line(self) -> str:
        return "; ".join(part._line() for part in self._parts) or self.note  # noqa: SLF001 - a part of its own

    def _repr_html_(self) -> str:
        parts = [part._repr_html_() for part in self._parts]
        return "".join([*parts, *([View(self.note).html()] if self.note else [])])
