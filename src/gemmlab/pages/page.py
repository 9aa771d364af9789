"""Render a page as one self-contained HTML file; its content security policy forbids all requests."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING

from gemmlab.core.version import __version__
from gemmlab.pages.charts import Drawing
from gemmlab.pages.parts import Part
from gemmlab.pages.sections import Section
from gemmlab.plots.bundle import vega_bundle

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of a page, in order."""

    parts: Sequence[Part]
    sections: Sequence[Section]
    together: Sequence[Drawing] = ()
    """Charts of all kernels together."""
    title: str = "gemmlab report"


def render(page: Page) -> bytes:
    """Return the whole file in UTF-8. Text from records is escaped, so that none of it acts as markup."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("gemmlab.pages", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["coded"] = coded
    drawings = list(_drawings(page))
    style, script = _file("report.css"), _file("report.js")
    bundle = vega_bundle() if drawings else ""
    scripts = [text for text in (script, bundle) if text]
    html = environment.get_template("page.html").render(
        title=page.title, version=__version__, made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        parts=page.parts, sections=page.sections, anchors=anchors(page.sections),
        # By identity: drawings contain dictionaries and have no hash, and equal ones may occur twice.
        number=lambda drawing: next(place for place, one in enumerate(drawings, 1) if one is drawing),
        specs=[packed(json.dumps(drawing.spec, separators=(",", ":"))) for drawing in drawings], together=page.together,
        pack=packed,
        style=Markup(style), script=Markup(script), bundle=Markup(bundle),  # noqa: S704 - our own files
        policy=_policy(style, scripts),
    )  # fmt: skip
    # A lone surrogate, which JSON may contain, cannot be encoded.
    return html.encode("utf-8", errors="replace")


def coded(text: str) -> Markup:
    """Return the text as HTML, with the parts between backticks as code."""
    from markupsafe import Markup, escape

    parts = [Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
             for place, part in enumerate(text.split("`"))]  # fmt: skip
    return Markup("").join(parts)


def anchors(sections: Sequence[Section]) -> dict[str, str]:
    """Return the anchor of each kernel's section: its id if that is a plain word, else the section's number."""
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


def packed(text: str) -> str:
    """Return the text compressed and in base64, for the page's script to unpack: a tenth as long and never markup."""
    return base64.b64encode(zlib.compress(text.encode("utf-8", errors="replace"), 9)).decode()


def _file(name: str) -> str:
    return files("gemmlab.pages").joinpath("templates", name).read_text(encoding="utf-8")


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Return the content security policy: nothing is loaded, and only scripts and styles with these digests apply."""
    allowed = " ".join(map(_source, scripts))
    return f"default-src 'none'; script-src {allowed}; style-src {_source(style)}; base-uri 'none'; form-action 'none'"


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
