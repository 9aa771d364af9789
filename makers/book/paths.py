"""The paths through the book, and its first page."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from book.page import Page, hidden_contents

_FILE = Path(__file__).with_name("paths.toml")
_REST = "More"


@dataclass(frozen=True, slots=True)
class Way:
    """A part of the book, with the names of its pages."""

    title: str
    about: str
    pages: tuple[str, ...]


def ways(names: Sequence[str]) -> list[Way]:
    """Return the parts of the book that `paths.toml` states, with those of their pages that are in `names`; the other
    names are a last part.
    """
    stated = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    found = [
        Way(one["title"], one["about"], tuple(name for name in one["pages"] if name in names))
        for one in stated.values()
    ]
    listed = {name for way in found for name in way.pages}
    if rest := sorted(set(names) - listed):
        found.append(Way(_REST, "Pages that are new.", tuple(rest)))
    return found


def first_page(pages: Sequence[Page]) -> Page:
    """Return the first page of the book: an introduction, the list of parts and pages, and the sidebar's contents."""
    titles = {page.name: title_of(page) for page in pages}
    parts = ["# gemmlab", _ABOUT, hidden_contents(["overview"], named="Overview")]
    for way in ways([name for name in titles if name != "overview"]):
        parts += [f"## {way.title}", way.about, "\n".join(f"- [{titles[name]}]({name}.md)" for name in way.pages),
                  hidden_contents(way.pages, way.title)]  # fmt: skip
    return Page("index.md", "index.md", "\n\n".join(parts) + "\n")


def title_of(page: Page) -> str:
    """Return a page's first heading; its name if it has none."""
    return next((line[2:].strip() for line in page.text.split("\n") if line.startswith("# ")), page.name)


_ABOUT = """How fast can a processor multiply two matrices, and what makes the difference? gemmlab is a ladder of
float32 kernels, a set of instruments that explain a kernel without a GPU, and a library call at the top of the ladder.
[The overview](overview.md) shows all of it on one page. Three paths lead through the book: *climb* if you want to
learn how a kernel becomes fast, *understand* if you have a kernel and want to know what it does, *use* if you want
the products. Words of the field are explained in [the glossary](glossary.md)."""
