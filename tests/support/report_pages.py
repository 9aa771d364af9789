"""A page as a parser reads it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from gemmlab.core.records import Record
from gemmlab.kernels.catalog import find_kernel
from gemmlab.pages.kernel_results import results_by_kernel
from gemmlab.pages.page import Page
from gemmlab.pages.parts import part_of
from gemmlab.pages.sections import Section, section

ELEMENTS = {
    "a", "bdi", "body", "br", "button", "code", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "footer",
    "h1", "h2", "h3", "h4", "head", "header", "html", "input", "label", "li", "main", "meta", "nav", "noscript", "ol",
    "p", "pre", "script", "section", "span", "style", "summary", "table", "tbody", "td", "th", "thead", "title", "tr",
    "ul",
}  # fmt: skip


class Parsed(HTMLParser):
    """Elements, attributes and text of a page; what stands in scripts apart."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        last = self.elements[-1][0] if self.elements else ""
        (self.raw[last] if last in self.raw and data.strip() else self.text).append(data)

    @property
    def shown(self) -> str:
        """All text, as a reader sees it."""
        return re.sub(r"\s+", " ", " ".join(self.text))


def page_of(*records: Record, outcomes: dict[str, Any] | None = None) -> Page:
    parts = [part_of(Path(f"{place}.json"), record) for place, record in enumerate(records)]
    return Page(parts, sections_of(records, outcomes))


def sections_of(records: tuple[Record, ...], outcomes: dict[str, Any] | None = None) -> list[Section]:
    found = {kernel: (outcomes or {}).get(kernel) for kernel in results_by_kernel(records)}
    known = {name: find_kernel(name) for name in ("naive", "block_tile", "vector_load")}
    seen = results_by_kernel(records)
    return [section(name, known.get(name), seen[name], found[name]) for name in seen]
