"""The options `--html` and `--profile`, and the kernel page that they write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gemmlab.analysis.explanation import Explanation
    from gemmlab.analysis.listing.listing import Listing

PageFlag = Annotated[
    Path | None,
    typer.Option("--html", metavar="PAGE.html", help="Write one offline page: source, PTX, machine code, figures."),
]
SamplesFlag = Annotated[
    Path | None,
    typer.Option("--profile", metavar="FILE.csv", help="Samples by instruction (ncu --page source --csv)."),
]


def write_page(out: Path, listings: Sequence[Listing]) -> None:
    """Write the page of one listing or of two, and say so on standard error. Raises `UsageError`."""
    from gemmlab.pages.kernel_page import kernel_page
    from gemmlab.pages.page_files import write

    html = kernel_page(listings)
    write(out, html)
    typer.echo(f"{out}: {len(html) / 1e6:.2f} MB", err=True)


def write_explained(out: Path | None, samples: Path | None, explained: Sequence[Explanation]) -> None:
    """Write the page of explained kernels; the samples are those of the first one. Nothing without a page to write.

    Raises `UsageError`.
    """
    from gemmlab.analysis.listing.listing import explained_listing
    from gemmlab.analysis.listing.samples import read_samples

    if out is None or not explained:
        return
    found = () if samples is None else read_samples(samples)
    write_page(out, [explained_listing(one, samples=() if place else found) for place, one in enumerate(explained)])


def require_page(out: Path | None, samples: Path | None) -> None:
    """Raise `UsageError` if the page cannot be written, or if there is a profile without a page to show it."""
    from gemmlab.core.errors import UsageError
    from gemmlab.pages.page_files import require_place

    if out is not None:
        require_place(out)
    elif samples is not None:
        raise UsageError("--profile belongs to --html, whose page shows the samples")
