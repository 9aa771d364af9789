"""Results as a notebook shows them, in a real browser: readable on light and dark ground, within a phone's width."""

from __future__ import annotations

from pathlib import Path

import pytest

import gemmlab
from gemmlab.core.notebook_view import Grid, View
from gemmlab.results.shipped_records import recorded_climb
from support.chromium import Browser

pytestmark = pytest.mark.slow

LEAST_CONTRAST = 4.5
"""WCAG 2.1, level AA, for text of usual size."""
CONTRASTS = """
(() => {
  const parts = (text) => { const n = text.match(/[0-9.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const over = (top, under) => [0, 1, 2].map((k) => top[k] * top[3] + under[k] * (1 - top[3]));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    if (!element) return [255, 255, 255];
    return over(parts(getComputedStyle(element).backgroundColor), ground(element.parentElement));
  };
  const found = [];
  for (const element of document.querySelectorAll('.gemmlab-view *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || element.tagName === 'STYLE') continue;
    const style = getComputedStyle(element), below = ground(element);
    const ink = parts(style.color);
    const shades = [light(over([...ink.slice(0, 3), ink[3] * style.opacity], below)), light(below)];
    const [a, b] = shades.sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), element.tagName + '.' + element.className]);
  }
  return found;
})()
"""


@pytest.fixture(scope="module")
def views() -> str:
    """Results of several kinds, one below the other."""
    record = recorded_climb("gemm")
    assert record is not None
    results = (
        record, gemmlab.compare(record, record), gemmlab.profile(load="h200"),
        gemmlab.explain_choice((512, 512), (512, 512), device="H200"), gemmlab.check("naive_ijk", sizes=3),
    )  # fmt: skip
    wrong = Grid(("kernel", "result"), (("mine", "FAIL"),), wrong=frozenset({(0, 1)}))
    made = View("mine", "FAIL", good=False, lines=("a race",), grids=(wrong,), folded=(("why", "long " * 99),))
    return "".join([*(one._repr_html_() for one in results), made.html()])


@pytest.mark.parametrize("width", [1000, 390])
@pytest.mark.parametrize(("paper", "ink"), [("#ffffff", "#1c1e21"), ("#111111", "#e0e0e0")], ids=["light", "dark"])
def test_views_are_readable_and_fit(
    browser: Browser, views: str, tmp_path: Path, width: int, paper: str, ink: str
) -> None:
    page = tmp_path / "cell.html"
    # A notebook gives the cell's output a colour on its ground, and nothing else.
    head = '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    page.write_text(f'{head}<body style="background:{paper};color:{ink};font-family:sans-serif">{views}', "utf-8")
    browser.resize(width, 800, phone=width < 500)
    browser.open(page.as_uri())
    assert browser.complaints() == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    contrasts = browser.run(CONTRASTS)
    assert len(contrasts) > 200
    assert [found for found in contrasts if found[0] < LEAST_CONTRAST] == []
