"""The page of a report: its contents, and their rendering as HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gemmlab.pages.charts import Drawing
from gemmlab.pages.document import document, packed
from gemmlab.pages.parts import Part
from gemmlab.pages.sections import Section
from gemmlab.plots.bundle import vega_bundle


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of a page: parts about records, charts of all kernels, and sections about one kernel each."""

    parts: Sequence[Part]
    sections: Sequence[Section]
    together: Sequence[Drawing] = ()
    """Charts of all kernels together, shown between parts and sections."""
    title: str = "gemmlab report"


def render(page: Page) -> bytes:
    """Return the page as an HTML file in UTF-8. Text from records is escaped, so that none of it acts as markup."""
    drawings = list(_drawings(page))
    return document(
        "page.html", ["report.css"], ["report.js"], vega_bundle() if drawings else "",
        title=page.title, parts=page.parts, sections=page.sections, anchors=anchors(page.sections),
        # By identity: drawings contain dictionaries and have no hash, and equal ones may occur twice.
        number=lambda drawing: next(place for place, one in enumerate(drawings, 1) if one is drawing),
        specs=[packed(json.dumps(drawing.spec, separators=(",", ":"))) for drawing in drawings], together=page.together,
    )  # fmt: skip


def anchors(sections: Sequence[Section]) -> dict[str, str]:
    """Return the anchor of each kernel's section, by id: `kernel-` with the id, or the section's number from 1.

    The number is used for an id that is no plain word.
    """
    plain = re.compile(r"[A-Za-z]\w*", re.ASCII)
    return {
        section.id: f"kernel-{section.id if plain.fullmatch(section.id) else place}"
        for place, section in enumerate(sections, 1)
    }


def _drawings(page: Page) -> Iterator[Drawing]:
    for part in page.parts:
        yield from part.drawings
    yield from page.together
    for section in page.sections:
        if section.study is not None:
            yield from section.study.drawings
