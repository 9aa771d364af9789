"""Links of a Markdown page, written for where the page stands in the site."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

FILES = "files"
"""Folder of the site for what pages link to and is no page: records, pictures, sources."""
_FENCE = r"^(?P<fence>```+)[^\n]*\n.*?^(?P=fence)[ \t]*$"
_CODE = r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
_TEXT = r"(?:`[^`\n]*`|\\.|[^`\[\]\\])*"
_LINK = rf"(?P<opens>!?\[{_TEXT}\]\()(?P<target>[^()\s]+)(?P<title>\s+\"[^\"]*\")?\)"
NO_PROSE = rf"(?:{_FENCE})|(?:<!--.*?-->)|(?:{_LINK})|(?:{_CODE})"
"""Fenced code, comments, links, code in a line. For `re.MULTILINE | re.DOTALL`."""
_EITHER = re.compile(NO_PROSE, re.MULTILINE | re.DOTALL)
_ELSEWHERE = ("http://", "https://", "mailto:")


class BookError(Exception):
    """Everything that is wrong with the pages, a line each."""


@dataclass(frozen=True, slots=True)
class Place:
    """The target of a link: a file, and an anchor in it; without an anchor the whole file."""

    path: str
    anchor: str = ""


@dataclass(slots=True)
class Links:
    """Resolves the links of pages; collects the files that they need and what is wrong with them."""

    root: Path
    """The checkout."""
    places: Mapping[Place, Place]
    """Places in the site by places in the checkout: a page by its file, a part that moved by file and anchor."""
    needed: dict[str, Path] = field(default_factory=dict)
    """Files to copy, by their path in the site."""
    wrong: list[str] = field(default_factory=list)

    def rewritten(self, text: str, origin: str, page: str) -> str:
        """Return the text of the file `origin` with its links as they are from `page` of the site."""

        def link(found: re.Match[str]) -> str:
            if found["target"] is None or found["target"].startswith(_ELSEWHERE):
                return found[0]
            if (self.root / PurePosixPath(origin).parent / found["target"]).is_dir():
                return found["opens"].lstrip("!")[1:-2]  # a folder is nothing to look at in the site
            target = self._target(found["target"], origin, page)
            return f"{found['opens']}{target}{found['title'] or ''})"

        return _EITHER.sub(link, text)

    def _target(self, target: str, origin: str, page: str) -> str:
        name, _, anchor = target.partition("#")
        file = os.path.normpath(PurePosixPath(origin).parent / name) if name else origin
        there = self.places.get(Place(file, anchor))
        if there is None and (whole := self.places.get(Place(file))) is not None:
            there = Place(whole.path, anchor)
        if there is None:
            if not (self.root / file).is_file():
                self.wrong.append(f"{origin}: links to {target}, which is no file")
                return target
            there = Place(f"{FILES}/{file}")
            self.needed[there.path] = self.root / file
        if there.path == page and there.anchor:
            return f"#{there.anchor}"
        between = os.path.relpath(there.path, PurePosixPath(page).parent)
        return f"{between}#{there.anchor}" if there.anchor else between


def slug(heading: str) -> str:
    """Return the anchor of a heading, as code hosts make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w -]", "", plain).strip().lower().replace(" ", "-")
