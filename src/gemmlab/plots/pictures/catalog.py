"""Catalog of kinds of pictures: every module of this folder that defines `DRAWING` is in it, without registration."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.core.words import nearest
from gemmlab.plots.pictures.drawing import Drawing, Picture, Subject

_HERE = Path(__file__).parent


@cache
def all_drawings() -> tuple[Drawing, ...]:
    """Return every kind of picture, in the order in which a kernel's pictures are shown."""
    modules = (import_module(f"{__package__}.{path.stem}") for path in sorted(_HERE.glob("*.py")))
    found = [module.DRAWING for module in modules if hasattr(module, "DRAWING")]
    return tuple(sorted(found, key=lambda drawing: (drawing.place, drawing.name)))


def pictures_for(subject: Subject, names: Sequence[str] = ()) -> tuple[Picture, ...]:
    """Draw the pictures of a kernel: those in `names`, in that order, or by default all that apply to it.

    Raises `UsageError` for an unknown name or a picture that does not apply to this kernel.
    """
    wanted = all_drawings() if not names else [find_drawing(name) for name in dict.fromkeys(names)]
    drawn = []
    for drawing in wanted:
        if drawing.applies(subject):
            drawn.append(Picture(drawing.name, drawing.title, drawing.caption, drawing.draw(subject)))
        elif names:
            raise UsageError(f"{subject.kernel.id}: there is nothing to draw as {drawing.name}")
    return tuple(drawn)


def find_drawing(name: str) -> Drawing:
    """Return the kind of picture of that name. Raises `UsageError` with the nearest names if there is none."""
    for drawing in all_drawings():
        if drawing.name == name:
            return drawing
    names = [drawing.name for drawing in all_drawings()]
    raise UsageError(f"no picture named {name!r}; {nearest(name, names, 'pictures', most=2)}")
