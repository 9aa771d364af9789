"""A page of the site, with the parts of other files that moved to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from book.links import Place


@dataclass(frozen=True, slots=True)
class Page:
    """The Markdown of one page."""

    path: str
    """Path in the site, such as `rungs/naive.md`."""
    origin: str
    """The file of the checkout that the links in the text are relative to."""
    text: str
    places: Mapping[Place, Place] = field(default_factory=dict)
    """Place in the checkout of a part that moved to this page -> its place in the site."""

    @property
    def name(self) -> str:
        """The page's path without `.md`, as tables of contents name it."""
        return self.path.removesuffix(".md")


def hidden_contents(names: Sequence[str], caption: str = "", named: str = "") -> str:
    """Return a table of contents that only the sidebar and the links to the next page show.

    `named`, if it is not empty, replaces the pages' own titles.
    """
    titled = f":caption: {caption}\n" if caption else ""
    lines = (f"{named} </{name}>" if named else f"/{name}" for name in names)
    return "```{toctree}\n:hidden:\n" + titled + "\n" + "\n".join(lines) + "\n```\n"
