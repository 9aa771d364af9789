"""`gemmlab new`: a CUDA kernel file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gemmlab.cli.answer import print_json
from gemmlab.core.errors import UsageError


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE.cu", help="Where to write it; its name becomes the kernel's.")],
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a working, commented CUDA kernel that gemmlab can compile, check and count."""
    from gemmlab.kernels.user_kernel import starting_text

    text = starting_text(file)
    if not file.resolve().parent.is_dir():
        raise UsageError(f"{file}: no folder {file.parent}")
    try:
        with file.open("w" if force else "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise UsageError(f"{file} is there already; --force writes over it") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}") from error
    steps = [f"gemmlab check {file} --device emulated", f"gemmlab compile {file}"]
    if as_json:
        print_json({"file": str(file), "kernel": file.stem, "next": steps})
    else:
        typer.echo(f"Written: {file}. Next:\n  " + "\n  ".join(steps))


def register(app: typer.Typer) -> None:
    app.command("new")(new)
