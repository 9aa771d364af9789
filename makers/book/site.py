"""Write all pages of the site into a folder, from which Sphinx makes the site."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from blocks.diffs import LADDERS, changes, size_of
from blocks.markdown import markdown_table
from blocks.records import ROOT
from book import glossary
from book.links import BookError, Links, Place
from book.page import Page, hidden_contents
from book.paths import first_page
from book.rungs import DIFFS, ladder_file, rung_page, rungs, without_rungs
from gemmlab.kernels.catalog import ladder

_OUTSIDE = {"README.md": "overview.md", "CHANGELOG.md": "changelog.md", "examples/README.md": "examples.md"}
"""File outside docs/ -> its page of the site."""
_WITHOUT_TERMS = (glossary.PAGE, "changelog.md", "index.md")
"""Pages whose words are not linked to the glossary."""


def write_site(folder: Path) -> None:
    """Empty `folder`, then write every page, with links that are right in the site, and the files that pages link to.

    Raises `BookError` for a link to a file that does not exist.
    """
    pages = [*_documents(), *map(rung_page, rungs())]
    places = {Place(page.origin): Place(page.path) for page in pages if not page.path.startswith("rungs/")}
    for page in pages:
        places |= page.places
    links = Links(ROOT, places)
    terms = glossary.terms_of((ROOT / "docs" / glossary.PAGE).read_text(encoding="utf-8"))
    shutil.rmtree(folder, ignore_errors=True)
    for page in [*pages, first_page([page for page in pages if not page.path.startswith("rungs/")])]:
        text = page.text if page.path == "index.md" else links.rewritten(page.text, page.origin, page.path)
        if page.path not in _WITHOUT_TERMS:
            text = glossary.linked(text, terms, "../" * page.path.count("/") + glossary.PAGE)
        text = re.sub(r"^<!-- .*? -->\n", "", text, flags=re.MULTILINE)
        (folder / page.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / page.path).write_text(text, encoding="utf-8")
    if links.wrong:
        raise BookError("\n".join(sorted(set(links.wrong))))
    for path, file in links.needed.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / path)


def _documents() -> list[Page]:
    """Return the pages that are files of the checkout; those of ladders lose the sections of their rungs."""
    files = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in _OUTSIDE)]
    return [_document(path.relative_to(ROOT).as_posix()) for path in files]


def _document(origin: str) -> Page:
    text = (ROOT / origin).read_text(encoding="utf-8")
    mine = [f"rungs/{kernel.id}" for kernel in rungs() if ladder_file(kernel) == origin]
    if mine:
        text = f"{without_rungs(origin, text).rstrip()}\n\n{hidden_contents(mine)}"
    if origin == DIFFS:
        text = _without_diffs(text)
    return Page(_OUTSIDE.get(origin, Path(origin).name), origin, text)


def _without_diffs(text: str) -> str:
    """Return the page of diffs with a table in place of each ladder's diffs, which are on the pages of the rungs."""
    for name, of in LADDERS.items():
        lines: Sequence[list[str]] = [
            [f"[`{one.id}`](#{one.id})", f"[`{one.after}`](#{one.after})", size_of(changes(one))]
            for one in ladder(*of)
            if one.after
        ]
        table = markdown_table(["rung", "after", "its diff"], [*lines], ["after", "its diff"])
        start, end = (text.index(f"<!-- {side} {name} -->") for side in ("begin", "end"))
        text = f"{text[:start]}{table}\n\n{text[end:]}"
    return text
