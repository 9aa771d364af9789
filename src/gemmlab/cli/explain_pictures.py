"""`gemmlab explain KERNEL --pictures DIR`: draw pictures of a kernel from its addresses and code, into files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gemmlab.core.errors import UsageError

if TYPE_CHECKING:
    from gemmlab.kernels.kernel import Kernel

FORMATS = ("svg", "png", "html")

PicturesFlag = Annotated[
    Path | None, typer.Option("--pictures", metavar="DIR", help="Draw pictures of the one kernel into this folder.")
]
PictureFlag = Annotated[
    list[str] | None, typer.Option("--picture", metavar="NAME", help="Draw only this picture; repeatable.")
]
FormatFlag = Annotated[
    list[str] | None, typer.Option("--format", help="Format of pictures: svg (the default), png or html; repeatable.")
]


@dataclass(frozen=True, slots=True)
class PictureRequest:
    """The pictures to draw, the folder to write them to, and their formats (of `FORMATS`)."""

    folder: Path
    names: Sequence[str]
    """Names of pictures; empty for all."""
    formats: Sequence[str]


def picture_request(
    folder: Path | None, names: Sequence[str] | None, formats: Sequence[str] | None, kernels: Sequence[str]
) -> PictureRequest | None:
    """Check the options of pictures, make `folder` and return the request; `None` without `--pictures`.

    `names` are those of `--picture`, `formats` those of `--format`. Raises `UsageError`.
    """
    if folder is None:
        if names or formats:
            raise UsageError(f"--{'picture' if names else 'format'}: name a folder with --pictures")
        return None
    if len(kernels) != 1:
        raise UsageError("--pictures: name one kernel to draw")
    if unknown := [name for name in formats or () if name not in FORMATS]:
        raise UsageError(f"--format is {unknown[0]}; it must be one of {', '.join(FORMATS)}")
    try:
        from gemmlab.plots.pictures.catalog import find_drawing
    except ModuleNotFoundError as error:
        raise UsageError(f"--pictures: {error.name} is not installed") from error
    for name in names or ():
        find_drawing(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror or error}") from error
    return PictureRequest(folder, tuple(names or ()), tuple(formats or FORMATS[:1]))


def write_pictures(
    request: PictureRequest, kernel: Kernel, arch: str, config: Mapping[str, int], sizes: str
) -> list[dict[str, Any]]:
    """Draw and write the pictures; return `name`, `title`, `caption` and `files` of each.

    Raises `UsageError` if a file cannot be written or the kernel has nothing to draw.
    """
    from gemmlab.instruments.kernel_pictures import drawn
    from gemmlab.plots.chart import save

    written = []
    for picture in drawn(kernel, arch, config, sizes, request.names):
        files = [request.folder / f"{picture.name}.{suffix}" for suffix in request.formats]
        try:
            save(picture.chart, *files)
        except OSError as error:
            raise UsageError(f"cannot write to {request.folder}: {error.strerror or error}") from error
        facts = {"name": picture.name, "title": picture.title, "caption": picture.caption}
        written.append({**facts, "files": [str(file) for file in files]})
    if not written:
        raise UsageError(f"{kernel.id}: there is nothing to draw")
    return written


def print_pictures(written: Sequence[Mapping[str, Any]]) -> None:
    """Print a line per file, with the picture's title."""
    typer.echo("\nPictures")
    wide = max(len(file) for picture in written for file in picture["files"])
    for picture in written:
        for file in picture["files"]:
            typer.echo(f"  {file:{wide}}  {picture['title']}")
