"""A page of the site, and the places that it takes over from the checkout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from book.links import Place


@dataclass(frozen=True, slots=True)
class Page:
    """Markdown for one page."""

    path: str
    """In the site: `rungs/naive.md`."""
    origin: str
    """The file of the checkout that links in the text start from."""
    text: str
    places: Mapping[Place, Place] = field(default_factory=dict)
    """Places of the site by places of the checkout that this page has taken over."""

    @property
    def name(self) -> str:
        """The page's path without `.md`, as tables of contents name it."""
        return self.path.removesuffix(".md")


def hidden_contents(names: Sequence[str], caption: str = "", named: str = "") -> str:
    """Return a table of contents that only the sidebar and the links to the next page show.

    `named` stands there in place of the pages' own titles.
    """
    titled = f":caption: {caption}\n" if caption else ""
    lines = (f"{named} </{name}>" if named else f"/{name}" for name in names)
    return "```{toctree}\n:hidden:\n" + titled + "\n" + "\n".join(lines) + "\n```\n"
