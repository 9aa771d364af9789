"""The option `--html`, which writes a kernel page, and `--profile`, whose samples the page shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gemmlab.analysis.listing.kernel_listing import Listing
    from gemmlab.instruments.explain_result import ExplainResult

PageFlag = Annotated[
    Path | None,
    typer.Option("--html", metavar="PAGE.html", help="Write one offline page: source, PTX, machine code, figures."),
]
SamplesFlag = Annotated[
    Path | None,
    typer.Option("--profile", metavar="FILE", help="Samples by instruction: a .ncu-rep, or its source page as CSV."),
]


def write_page(out: Path, listings: Sequence[Listing]) -> None:
    """Write the page of one listing or of two, and print its path and size on standard error. Raises `UsageError`."""
    from gemmlab.pages.kernel_page import kernel_page
    from gemmlab.pages.page_files import write

    write(out, kernel_page(listings))
    _say_size(out)


def write_explained(out: Path | None, samples: Path | None, explained: ExplainResult) -> None:
    """Write the page of explained kernels, and print its path and size on standard error.

    The file `samples` belongs to the first kernel. Does nothing without `out` or without an explained kernel. Raises
    `UsageError`.
    """
    if out is not None and explained.explanations:
        _say_size(explained.to_html(out, samples))


def _say_size(out: Path) -> None:
    typer.echo(f"{out}: {out.stat().st_size / 1e6:.2f} MB", err=True)


def require_page(out: Path | None, samples: Path | None) -> None:
    """Raise `UsageError` if the page `out` cannot be written, or if there are samples and no page to show them."""
    from gemmlab.core.errors import UsageError
    from gemmlab.pages.page_files import require_place

    if out is not None:
        require_place(out)
    elif samples is not None:
        raise UsageError("--profile needs --html: the page shows the samples")
