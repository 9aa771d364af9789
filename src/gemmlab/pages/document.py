"""One self-contained HTML file from a template; its content security policy forbids all requests."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gemmlab.core.version import __version__

if TYPE_CHECKING:
    from markupsafe import Markup


def document(template: str, styles: Sequence[str], scripts: Sequence[str], bundle: str = "", **values: Any) -> bytes:
    """Return the HTML file in UTF-8 that `template` makes of the variables in `values`.

    Text among `values` is escaped, so that none of it acts as markup. `styles` and `scripts` are files of the package's
    `templates`, added after those that every page has; `bundle` is the text of one more script.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("gemmlab.pages", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["coded"] = coded
    style = "".join(map(_file, ("base.css", *styles)))
    script = "".join(map(_file, ("inflate.js", "base.js", *scripts)))
    html = environment.get_template(template).render(
        version=__version__, made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), pack=packed,
        style=Markup(style), script=Markup(script), bundle=Markup(bundle),  # noqa: S704 - our own files
        policy=_policy(style, [text for text in (script, bundle) if text]), **values,
    )  # fmt: skip
    # A lone surrogate, which JSON may contain, cannot be encoded.
    return html.encode("utf-8", errors="replace")


def coded(text: str) -> Markup:
    """Return the text as HTML, with the parts between backticks as code."""
    from markupsafe import Markup, escape

    parts = [Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
             for place, part in enumerate(text.split("`"))]  # fmt: skip
    return Markup("").join(parts)


def packed(text: str) -> str:
    """Return the text compressed and in base64, for the page's script to unpack: a tenth as long and never markup."""
    return base64.b64encode(zlib.compress(text.encode("utf-8", errors="replace"), 9)).decode()


def _file(name: str) -> str:
    return files("gemmlab.pages").joinpath("templates", name).read_text(encoding="utf-8")


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Return the content security policy: nothing is loaded, and only this style and these scripts apply, by digest."""
    allowed = " ".join(map(_source, scripts))
    return f"default-src 'none'; script-src {allowed}; style-src {_source(style)}; base-uri 'none'; form-action 'none'"


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
