"""The display of results in a notebook: one short line as `repr`, and a small piece of HTML.

All text is escaped. The HTML has no scripts and loads nothing. Colours are readable on light and on dark backgrounds.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gemmlab.core.numerals import plain
from gemmlab.core.words import printable_lines

if TYPE_CHECKING:
    from markupsafe import Markup

LONGEST = 299
"""Most characters of a `repr`."""
MOST_ROWS = 60
"""Most rows of a table that the HTML shows; a line after them has the number of the others."""
_STYLE = """
.gemmlab-view{font-size:13px;line-height:1.45;max-width:100%;overflow-x:auto}
.gemmlab-view p{margin:.25em 0}
.gemmlab-view .gv-head{font-weight:600;font-size:14px}
.gemmlab-view .gv-badge{border-radius:4px;padding:1px 7px;margin-right:.6em;color:#fff;background:#57606a}
.gemmlab-view .gv-good{background:#1a7f37}.gemmlab-view .gv-bad{background:#b42318}
.gemmlab-view table{border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums;background:transparent;
font-size:inherit}
.gemmlab-view caption{text-align:left;font-weight:600;padding:.2em 0;color:inherit;caption-side:top}
.gemmlab-view th,.gemmlab-view td{padding:2px 9px;border:0;border-bottom:1px solid rgba(128,128,128,.35);
text-align:left;vertical-align:top;background:transparent;color:inherit}
.gemmlab-view .gv-n{text-align:right;white-space:nowrap}
.gemmlab-view .gv-wrong{font-weight:600;text-decoration:underline #e5484d 2px}
.gemmlab-view pre{margin:.3em 0;padding:.5em;max-height:24em;overflow:auto;color:inherit;
background:rgba(128,128,128,.12);font-size:12px;white-space:pre}
.gemmlab-view summary{cursor:pointer}.gemmlab-view .gv-soft{opacity:.75}
.gemmlab-view img{max-width:100%;background:#fff;border-radius:4px}
"""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of texts."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: frozenset[int] = frozenset({0})
    """Numbers of the columns that are aligned left, as they contain words; the others are aligned right."""
    caption: str = ""
    wrong: frozenset[tuple[int, int]] = frozenset()
    """Cells (row, column) that show a fault."""


@dataclass(frozen=True, slots=True)
class View:
    """The contents of one result's HTML, from top to bottom."""

    title: str
    badge: str = ""
    """The verdict in one word; empty if there is none."""
    good: bool | None = None
    """Colour of the badge: green for `True`, red for `False`, grey for `None`."""
    lines: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    images: tuple[tuple[bytes, str], ...] = ()
    """Images: the bytes of an SVG file, and the text that stands for it."""
    folded: tuple[tuple[str, str], ...] = ()
    """Long texts, folded at first: the line to click on, and the text that it opens."""
    notes: tuple[str, ...] = ()

    def html(self) -> str:
        """Return the contents as one HTML element with its style."""
        from markupsafe import Markup

        badge = Markup('<span class="gv-badge{}">{}</span>').format(
            "" if self.good is None else " gv-good" if self.good else " gv-bad", _text(self.badge)
        )
        parts = [
            Markup('<p class="gv-head">{}{}</p>').format(badge if self.badge else "", _text(self.title)),
            *(Markup("<p>{}</p>").format(_text(line)) for line in self.lines),
            *map(_grid, self.grids),
            *(
                Markup('<p><img alt="{}" src="data:image/svg+xml;base64,{}"></p>').format(
                    _text(text), base64.b64encode(svg).decode()
                )
                for svg, text in self.images
            ),
            *(
                Markup("<details><summary>{}</summary><pre>{}</pre></details>").format(_text(name), _text(text))
                for name, text in self.folded
            ),
            *(Markup('<p class="gv-soft">{}</p>').format(_text(note)) for note in self.notes),
        ]
        style = Markup("<style>{}</style>").format(Markup(_STYLE))  # noqa: S704 - our own text
        return str(Markup('<div class="gemmlab-view">{}{}</div>').format(style, Markup("").join(parts)))


class Display:
    """Base class of results with a short `repr` and HTML for notebooks.

    A subclass defines `_line`. It may define `_view`, by default that line alone, as the contents of the HTML.
    """

    __slots__ = ()

    def _line(self) -> str:
        """Return the result in one line of text."""
        raise NotImplementedError

    def _view(self) -> View:
        """Return the contents of the HTML."""
        return View(self._line())

    def __repr__(self) -> str:
        """Return one line of fewer than 300 characters."""
        return short(f"{type(self).__name__} {self._line()}")

    def _repr_html_(self) -> str:
        return self._view().html()


def short(text: str) -> str:
    """Return `text` on one line in angle brackets; if that exceeds `LONGEST` characters, `...` replaces its middle."""
    line = " ".join(printable_lines(text).split())
    room = LONGEST - len("<...>")
    return f"<{line}>" if len(line) <= LONGEST - 2 else f"<{line[: room // 2]}...{line[-(room - room // 2) :]}>"


def grid(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "", texts: Iterable[int] = (0,)
) -> Grid:
    """Return a table of values, each in the form that `cell` gives it."""
    cells = tuple(tuple(map(cell, row)) for row in rows)
    return Grid(tuple(headings), cells, frozenset(texts), caption)


def cell(value: Any) -> str:
    """Return a value as text in a table: a float with four digits, an `int` with commas, `bool` as yes or no.

    `None` is empty; any other value is its `str`.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return plain(value) if isinstance(value, float) else str(value)


def _text(text: str) -> str:
    # A lone surrogate, which JSON may contain, cannot be encoded.
    return printable_lines(text).encode("utf-8", errors="replace").decode()


def _grid(table: Grid) -> Markup:
    from markupsafe import Markup

    def line(tag: str, cells: Sequence[str], row: int = -1) -> Markup:
        made = []
        for column, text in enumerate(cells):
            classes = ["gv-n"] * (column not in table.texts) + ["gv-wrong"] * ((row, column) in table.wrong)
            kind = Markup(' class="{}"').format(" ".join(classes)) if classes else ""
            made.append(Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), kind, _text(text)))  # noqa: S704 - ours
        return Markup("<tr>{}</tr>").format(Markup("").join(made))

    more = len(table.rows) - MOST_ROWS
    return Markup("<table>{}<thead>{}</thead><tbody>{}</tbody></table>{}").format(
        Markup("<caption>{}</caption>").format(_text(table.caption)) if table.caption else "",
        line("th", table.headings),
        Markup("").join(line("td", row, number) for number, row in enumerate(table.rows[:MOST_ROWS])),
        Markup('<p class="gv-soft">and {} more</p>').format(more) if more > 0 else "",
    )
