"""`gemmlab explain KERNEL --roofline FILE`: draw the explained kernels in the roofline chart of their GPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gemmlab.cli.explain_pictures import FORMATS
from gemmlab.cli.option_values import require_place
from gemmlab.core.errors import UsageError

if TYPE_CHECKING:
    from gemmlab.analysis.explanation import Explanation

RooflineFlag = Annotated[
    Path | None, typer.Option("--roofline", metavar="FILE", help="Draw GPU kernels under their GPU's roofs.")
]


def require_drawable(path: Path | None) -> None:
    """Raise `UsageError` if no chart can be written to `path` or its suffix is none of `FORMATS`; accept `None`."""
    if path is None:
        return
    if path.suffix.removeprefix(".") not in FORMATS:
        raise UsageError(f"--roofline {path}: the name ends with .{', .'.join(FORMATS)}")
    require_place("--roofline", path)


def write_roofline(path: Path, explained: Sequence[Explanation]) -> None:
    """Draw the roofline chart into `path`. Raises `UsageError` when it cannot be written."""
    from gemmlab.analysis.roofline_chart import under_roof
    from gemmlab.plots.chart import save

    try:
        save(under_roof(explained), path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
