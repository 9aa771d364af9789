"""Rewrite the links of a Markdown page for the page's place in the site."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

FILES = "files"
"""Folder of the site for linked files that are no pages: records, pictures, sources."""
_FENCE = r"^(?P<fence>```+)[^\n]*\n.*?^(?P=fence)[ \t]*$"
_CODE = r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
_TEXT = r"(?:`[^`\n]*`|\\.|[^`\[\]\\])*"
_LINK = rf"(?P<opens>!?\[{_TEXT}\]\()(?P<target>[^()\s]+)(?P<title>\s+\"[^\"]*\")?\)"
NO_PROSE = rf"(?:{_FENCE})|(?:<!--.*?-->)|(?:{_LINK})|(?:{_CODE})"
"""Pattern for fenced code, comments, links and code in a line, with the flags `re.MULTILINE | re.DOTALL`."""
_EITHER = re.compile(NO_PROSE, re.MULTILINE | re.DOTALL)
_ELSEWHERE = ("http://", "https://", "mailto:")


class BookError(Exception):
    """Faults of the pages; the message has one line for each."""


@dataclass(frozen=True, slots=True)
class Place:
    """The target of a link: a file, and an anchor in it; without an anchor the whole file."""

    path: str
    anchor: str = ""


@dataclass(slots=True)
class Links:
    """A resolver of links. It collects the files that the links need, and the links that lead nowhere."""

    root: Path
    """The checkout."""
    places: Mapping[Place, Place]
    """Place in the checkout -> place in the site: for a page by its file, for a part that moved by file and anchor."""
    needed: dict[str, Path] = field(default_factory=dict)
    """Path in the site -> the file to copy there."""
    wrong: list[str] = field(default_factory=list)
    """A sentence for each link to a file that does not exist."""

    def rewritten(self, text: str, origin: str, page: str) -> str:
        """Return the text of the file `origin` with links that are right on the page `page` of the site. A link to a
        folder becomes its text.
        """

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
    """Return the anchor of a heading, by the rule of code hosts."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w -]", "", plain).strip().lower().replace(" ", "-")
