"""A page in a real browser: its tables sort, filter and fold, it fits a phone, and paper has all of it."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from gemmlab.pages.page import Page, render
from gemmlab.pages.parts import part_of
from support.chromium import Browser
from support.cuda_source import needs_compiler
from support.paper import placed
from support.report_in_browser import SIZES, drawn
from support.report_records import gpu_bench

pytestmark = pytest.mark.slow
COLUMN = "[...document.querySelectorAll('#part-1 tbody tr')].map((row) => row.cells[{}].textContent)"


def test_columns_sort_both_ways_with_what_is_empty_last(displayed: Browser) -> None:
    click = "document.querySelectorAll('#part-1 th button')[{}].click()"

    def numbers(column: int) -> list[float | None]:
        cells = displayed.run(COLUMN.format(column))
        return [float(cell) if cell else None for cell in cells]

    before = numbers(3)
    displayed.run(click.format(3))
    known = [value for value in before if value is not None]
    assert numbers(3) == sorted(known) != before
    displayed.run(click.format(3))
    assert numbers(3) == sorted(known, reverse=True)
    assert displayed.run("document.querySelectorAll('#part-1 th')[3].getAttribute('aria-sort')") == "descending"
    for _way in range(2):
        displayed.run(click.format(7))
        found = numbers(7)
        assert found[-1] is None
        assert None not in found[: sum(value is not None for value in found)]
    displayed.run(click.format(1))
    sizes = [int(cell.removesuffix("³")) for cell in displayed.run(COLUMN.format(1))]
    assert sizes == sorted(sizes)
    displayed.run(click.format(0))
    names = displayed.run(COLUMN.format(0))
    assert names[:2] == sorted(names)[:2]


def test_a_filter_leaves_the_rows_that_have_its_words(displayed: Browser) -> None:
    assert displayed.run("document.querySelectorAll('#part-1 input').length") == 0, "short tables have none"
    displayed.run("""(() => {
        const input = document.querySelector("#part-2 input");
        input.value = "1024 CUBLAS";
        input.dispatchEvent(new Event("input", { bubbles: true }));
    })()""")
    rows = "[...document.querySelectorAll('#part-2 tbody tr')].filter((row) => !row.hidden)"
    assert displayed.run(f"{rows}.map((row) => row.cells[0].textContent + row.cells[1].textContent)") == ["cublas1024³"]
    displayed.run("""(() => {
        const input = document.querySelector("#part-2 input");
        input.value = "";
        input.dispatchEvent(new Event("input", { bubbles: true }));
    })()""")
    assert displayed.run(f"{rows}.length") == 4 * len(SIZES)


def test_a_long_table_is_folded_and_still_sorts_and_filters(displayed: Browser, tmp_path: Path) -> None:
    record = gpu_bench("", *range(128, 128 * 21, 128))
    path = tmp_path / "long.html"
    path.write_bytes(render(Page([part_of(Path("long.json"), record)], [])))
    displayed.open(path.as_uri())
    shown = "[...document.querySelectorAll('#part-1 tbody tr')].filter((row) => row.offsetParent !== null)"
    more = "document.querySelector('#part-1 .more button')"
    sizes = f"{shown}.map((row) => parseInt(row.cells[1].textContent))"

    def look_for(words: str) -> None:
        displayed.run(f"""(() => {{
            const input = document.querySelector("#part-1 input");
            input.value = "{words}";
            input.dispatchEvent(new Event("input", {{ bubbles: true }}));
        }})()""")

    assert displayed.run(f"{shown}.length") == 20
    assert displayed.run(f"{more}.textContent") == "Show all 80 rows"
    for down in (False, True):
        displayed.run("document.querySelectorAll('#part-1 th button')[1].click()")
        expected = sorted([*range(128, 128 * 21, 128)] * 4, reverse=down)[:20]
        assert displayed.run(sizes) == expected
    look_for("256")
    assert 4 <= displayed.run(f"{shown}.length") <= 20
    assert displayed.run(f"{more}.offsetParent === null")
    look_for("")
    displayed.run(f"{more}.click()")
    assert displayed.run(f"{shown}.length") == 80
    assert displayed.run(f"{more}.textContent") == "Show the first 20 of 80 rows"
    displayed.run(f"{more}.click()")
    assert displayed.run(f"{shown}.length") == 20


def test_a_phone_shows_it_without_scrolling_sideways(displayed: Browser) -> None:
    displayed.resize(375, 800, phone=True)
    assert drawn(displayed)
    assert displayed.run("innerWidth") == 375
    assert displayed.run("document.documentElement.scrollWidth") == 375
    too_wide = """[...document.querySelectorAll("body *")].filter((one) => {
        if (one.closest(".scroll, .canvas, pre, svg")) return false;
        const box = one.getBoundingClientRect();
        return box.width > 0 && box.right > 375.5;
    }).map((one) => one.outerHTML.slice(0, 200))"""
    assert displayed.run(too_wide) == []
    curves = "[...document.querySelectorAll('figure[data-fit=curves] svg')].map((one) => one.clientWidth)"
    assert all(width <= 375 for width in displayed.run(curves))


def test_a_phone_shows_names_and_values_whole(displayed: Browser, climbs: bytes, tmp_path: Path) -> None:
    path = tmp_path / "climbs.html"
    path.write_bytes(climbs)
    displayed.resize(390, 800, phone=True)
    displayed.open(path.as_uri())
    assert drawn(displayed) == 3
    charts = json.loads(
        displayed.run("""JSON.stringify([...document.querySelectorAll("figure[data-fit=ladder]")].map(
        (one) => [one.querySelector(".canvas").clientWidth, one.querySelector("svg").getBoundingClientRect().width,
                  [...one.querySelectorAll("svg text")].map((text) => text.textContent)]))""")
    )
    assert len(charts) == 2
    for room, width, texts in charts:
        assert 200 < width <= room
        assert [text for text in texts if "…" in text] == []
    assert "warp_tile_double_buffer" in charts[1][2]


@needs_compiler
def test_paper_has_every_chart_and_column_in_light_colours(displayed: Browser, report: Path) -> None:
    displayed.resize(1200, 800)
    displayed.prefer("dark")
    displayed.open(report.as_uri())
    assert displayed.run("document.querySelectorAll('figure svg').length") < displayed.run(
        "document.querySelectorAll('figure').length"
    ), "charts are drawn when they come into view"
    # The handler of the page ran before this one, and what it began has ended when the browser lays the paper out.
    displayed.run("""addEventListener("afterprint", () => {
        window.printed = [...document.querySelectorAll("figure")].map(
            (one) => one.querySelectorAll("svg path, svg text").length);
        window.codes = [...document.querySelectorAll("pre[data-packed]")].map((one) => one.textContent);
    })""")
    pdf = base64.b64decode(displayed.send("Page.printToPDF", printBackground=True)["data"])
    assert min(displayed.run("window.printed")) > 10
    assert all("FFMA" in code for code in displayed.run("window.codes"))
    assert placed(pdf) > 20 * displayed.run("document.querySelectorAll('figure').length")
    try:
        displayed.send("Emulation.setEmulatedMedia", media="print", features=[])
        displayed.resize(718, 900)
        displayed.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert displayed.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        wide = """[...document.querySelectorAll("td, th, pre, svg")].filter(
            (one) => one.getBoundingClientRect().right > 719).map((one) => one.outerHTML.slice(0, 120))"""
        assert displayed.run(wide) == []
    finally:
        displayed.send("Emulation.setEmulatedMedia", media="", features=[])
