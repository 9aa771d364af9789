"""The terms of docs/glossary.md, and links to them from the first use of each term on a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from book.links import NO_PROSE, slug

PAGE = "glossary.md"
_ENTRY = re.compile(
    r"^### (?P<name>.+)\n+(?:<!-- also: (?P<also>[^\n]+) -->\n+)?(?P<text>(?:(?!^#).*\n?)+)", re.MULTILINE
)
_NO_PROSE_LINES = "#|<"
"""First characters of headings, tables and HTML."""
_MOST = 180
"""The most characters of an explanation that shows when the pointer rests on a term."""


@dataclass(frozen=True, slots=True)
class Term:
    """One entry: its heading, the words that are linked to it, and its first sentence."""

    name: str
    words: tuple[str, ...]
    meaning: str

    @property
    def anchor(self) -> str:
        return slug(self.name)


def terms_of(text: str) -> list[Term]:
    """Return the entries of the glossary's text: `### Name`, `<!-- also: other words -->`, the explanation.

    With `also: =word, word` the heading itself is not linked, because it also means other things.
    """
    found = []
    for entry in _ENTRY.finditer(text):
        said = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", entry["text"]).replace("`", "").split())
        also = (entry["also"] or "").strip()
        words = [word.strip() for word in also.removeprefix("=").split(",") if word.strip()]
        if not also.startswith("="):
            words.insert(0, entry["name"])
        first = re.split(r"(?<=\.) ", said)[0]
        meaning = first if len(first) <= _MOST else first[: _MOST - 1].rstrip() + "…"
        found.append(Term(entry["name"], tuple(words), meaning.replace('"', "'")))
    return found


def linked(text: str, terms: Sequence[Term], glossary: str) -> str:
    """Return a page's text with the first use of each term linked; `glossary` is the glossary's path from the page.

    A term in a heading, in a table, in code or in the text of a link is no use of it.
    """
    by_word = {word: term for term in terms for word in term.words}
    left = dict.fromkeys(term.name for term in terms)
    words = sorted(by_word, key=len, reverse=True)
    uses = "|".join(f"(?P<w{index}>{_pattern(word)})" for index, word in enumerate(words))

    def link(found: re.Match[str]) -> str:
        group = str(found.lastgroup)
        if not re.fullmatch(r"w\d+", group):
            return found[0]
        term = by_word[words[int(group[1:])]]
        if term.name not in left or text[text.rfind("\n", 0, found.start()) + 1] in _NO_PROSE_LINES:
            return found[0]
        del left[term.name]
        return f'[{found[0]}]({glossary}#{term.anchor} "{term.meaning}")'

    return re.sub(rf"{NO_PROSE}|{uses}", link, text, flags=re.MULTILINE | re.DOTALL)


def _pattern(word: str) -> str:
    """Return the expression that finds a word, its plural, and either case of its first letter."""
    escaped = re.escape(word)
    if not word.isupper() and word[0].isalpha() and word[1:] == word[1:].lower():
        escaped = f"[{word[0].upper()}{word[0].lower()}]{escaped[1:]}"
    return rf"(?<![\w/.-]){escaped}(?:s|es)?(?![\w-])"
