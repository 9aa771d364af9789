"""`gemmlab blas`: write the matrix product as a library with BLAS's symbols, for programs that do not use Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gemmlab.cli.answer import print_json


def write_blas(
    emit: Annotated[
        Path, typer.Option(metavar="FILE", help="File to write: NAME.so, a library, or NAME.o, an object.")
    ],
    lanes: Annotated[
        int, typer.Option(help="Float32 values in a vector: 4, 8 or 16. 0: as many as this processor has.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write `sgemm_` and `cblas_sgemm`, compiled for this processor, into a file to link or to preload.

    Exits with 2 if the file cannot be made, with 3 if this processor lacks vectors of that width.
    """
    from gemmlab.blas import write_library
    from gemmlab.blas.native import SYMBOLS

    path = write_library(emit, lanes or None)
    if as_json:
        print_json({"path": str(path), "bytes": path.stat().st_size, "symbols": list(SYMBOLS)})
    else:
        typer.echo(f"{path}: {', '.join(SYMBOLS)}")


def register(app: typer.Typer) -> None:
    app.command("blas")(write_blas)
