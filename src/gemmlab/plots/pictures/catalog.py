"""Pictures by file: whatever module of this folder has a `DRAWING` is in the catalog, nothing is registered."""

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
    """Every kind of picture, in the order in which a kernel's are shown."""
    modules = (import_module(f"{__package__}.{path.stem}") for path in sorted(_HERE.glob("*.py")))
    found = [module.DRAWING for module in modules if hasattr(module, "DRAWING")]
    return tuple(sorted(found, key=lambda drawing: (drawing.place, drawing.name)))


def pictures_for(subject: Subject, names: Sequence[str] = ()) -> tuple[Picture, ...]:
    """The pictures of a kernel, drawn: all that there are of it, or those named.

    Raises `UsageError` for a name that is none, or that has nothing to show of this kernel.
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
    """The kind of picture of that name; `UsageError` with the nearest names otherwise."""
    for drawing in all_drawings():
        if drawing.name == name:
            return drawing
    names = [drawing.name for drawing in all_drawings()]
    raise UsageError(f"no picture named {name!r}; {nearest(name, names, 'pictures', most=2)}")
