"""A page in a real browser: it draws, sorts, changes colours, fits a phone, asks for nothing, and believes no one."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemmlab.core.records import load_record
from gemmlab.kernels.catalog import find_kernel
from gemmlab.pages.kernel_results import results_by_kernel
from gemmlab.pages.page import Page, render
from gemmlab.pages.parts import part_of
from gemmlab.pages.roofs import roof_drawings
from gemmlab.pages.sections import section
from gemmlab.pages.studies import Request, Study, study
from support.chromium import Browser
from support.cuda_source import needs_compiler
from support.paper import placed
from support.paths import CPU, RESULTS
from support.report_records import HOSTILE, gpu_bench, hostile_record

pytestmark = pytest.mark.slow

NAME = "kernel-naive"
SIZES = (256, 384, 512, 768, 1024, 2048)
DRAWN = "[...document.querySelectorAll('figure')].every((one) => one.dataset.drawn || !one.offsetParent)"
COLUMN = "[...document.querySelectorAll('#part-1 tbody tr')].map((row) => row.cells[{}].textContent)"


@pytest.fixture(scope="module")
def explained() -> Study | None:
    """`naive`, with its pictures, where there is a compiler."""
    found = study(Request("naive", arch="sm_90"))
    return found if isinstance(found, Study) else None


@pytest.fixture(scope="module")
def climbs() -> bytes:
    """What was recorded of all ladders, without explanations."""
    names = (f"{CPU}/climb.json", "h200/climb-cuda.json", "h200/reduce.json")
    records = [load_record(RESULTS / name) for name in names]
    sections = [section(name, find_kernel(name), seen, None) for name, seen in results_by_kernel(records).items()]
    assert len(sections) > 30
    return render(Page([part_of(Path(name), r) for name, r in zip(names, records, strict=True)], sections))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, explained: Study | None) -> Path:
    """A climb, a GPU's bench and a hostile record, with one kernel explained."""
    records = [load_record(RESULTS / CPU / "climb.json"), gpu_bench("", *SIZES), hostile_record()]
    outcome = {"naive": explained} if explained is not None else {}
    known = {name: find_kernel(name) for name in ("naive", "block_tile", "vector_load", "packed")}
    sections = [
        section(name, known.get(name), seen, outcome.get(name)) for name, seen in results_by_kernel(records).items()
    ]
    parts = [part_of(Path(f"{place}.json"), record) for place, record in enumerate(records)]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_bytes(render(Page(parts, sections, tuple(roof_drawings(sections)))))
    return path


@pytest.fixture
def opened(browser: Browser, page: Path) -> Iterator[Browser]:
    """The page, new, on a large window in light colours; whatever a test does, nobody may complain."""
    browser.prefer("light")
    browser.resize(1200, 4000)
    browser.open_afresh(page.as_uri())
    yield browser
    assert browser.complaints() == []


def drawn(browser: Browser) -> int:
    """Draw every chart, those of folded sections too; how many there are."""
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.resize(browser.run("innerWidth"), 60000)
    browser.until(DRAWN)
    return int(browser.run("document.querySelectorAll('figure svg').length"))


@needs_compiler
def test_every_chart_is_drawn_and_nothing_is_asked_for(opened: Browser, page: Path) -> None:
    figures = opened.run("document.querySelectorAll('figure').length")
    assert figures == drawn(opened) >= 8
    marks = "[...document.querySelectorAll('figure svg')].map((one) => one.querySelectorAll('path, text').length)"
    assert min(opened.run(marks)) > 10
    titles = opened.run("[...document.querySelectorAll('figure h4')].map((one) => one.textContent)")
    assert {"The ladder", "The ladder at 2048³", "Speed by size", "Roofline on H200"} <= set(titles)
    assert opened.requests() == [page.as_uri()]


def test_the_policy_of_the_page_keeps_scripts_out(opened: Browser) -> None:
    opened.run("""(() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.body.append(script);
        const image = document.createElement("img");
        image.src = "https://example.org/pixel.png";
        document.body.append(image);
    })()""")
    assert opened.run("window.ran === undefined")
    opened.until("performance.now() > 0")
    refused = opened.complaints()
    assert any("script" in text for text in refused)
    assert any("img-src" in text or "image" in text for text in refused)
    opened.events.clear()


def test_columns_sort_both_ways_with_what_is_empty_last(opened: Browser) -> None:
    click = "document.querySelectorAll('#part-1 th button')[{}].click()"

    def numbers(column: int) -> list[float | None]:
        cells = opened.run(COLUMN.format(column))
        return [float(cell) if cell else None for cell in cells]

    before = numbers(3)
    opened.run(click.format(3))
    known = [value for value in before if value is not None]
    assert numbers(3) == sorted(known) != before
    opened.run(click.format(3))
    assert numbers(3) == sorted(known, reverse=True)
    assert opened.run("document.querySelectorAll('#part-1 th')[3].getAttribute('aria-sort')") == "descending"
    for _way in range(2):
        opened.run(click.format(7))
        found = numbers(7)
        assert found[-1] is None
        assert None not in found[: sum(value is not None for value in found)]
    opened.run(click.format(1))
    sizes = [int(cell.removesuffix("³")) for cell in opened.run(COLUMN.format(1))]
    assert sizes == sorted(sizes)
    opened.run(click.format(0))
    names = opened.run(COLUMN.format(0))
    assert names[:2] == sorted(names)[:2]


def test_a_filter_leaves_the_rows_that_have_its_words(opened: Browser) -> None:
    assert opened.run("document.querySelectorAll('#part-1 input').length") == 0, "short tables have none"
    opened.run("""(() => {
        const input = document.querySelector("#part-2 input");
        input.value = "1024 CUBLAS";
        input.dispatchEvent(new Event("input", { bubbles: true }));
    })()""")
    rows = "[...document.querySelectorAll('#part-2 tbody tr')].filter((row) => !row.hidden)"
    assert opened.run(f"{rows}.map((row) => row.cells[0].textContent + row.cells[1].textContent)") == ["cublas1024³"]
    opened.run("""(() => {
        const input = document.querySelector("#part-2 input");
        input.value = "";
        input.dispatchEvent(new Event("input", { bubbles: true }));
    })()""")
    assert opened.run(f"{rows}.length") == 4 * len(SIZES)


def test_a_long_table_is_folded_and_still_sorts_and_filters(opened: Browser, tmp_path: Path) -> None:
    record = gpu_bench("", *range(128, 128 * 21, 128))
    path = tmp_path / "long.html"
    path.write_bytes(render(Page([part_of(Path("long.json"), record)], [])))
    opened.open(path.as_uri())
    shown = "[...document.querySelectorAll('#part-1 tbody tr')].filter((row) => row.offsetParent !== null)"
    more = "document.querySelector('#part-1 .more button')"
    sizes = f"{shown}.map((row) => parseInt(row.cells[1].textContent))"

    def look_for(words: str) -> None:
        opened.run(f"""(() => {{
            const input = document.querySelector("#part-1 input");
            input.value = "{words}";
            input.dispatchEvent(new Event("input", {{ bubbles: true }}));
        }})()""")

    assert opened.run(f"{shown}.length") == 20
    assert opened.run(f"{more}.textContent") == "Show all 80 rows"
    for down in (False, True):
        opened.run("document.querySelectorAll('#part-1 th button')[1].click()")
        expected = sorted([*range(128, 128 * 21, 128)] * 4, reverse=down)[:20]
        assert opened.run(sizes) == expected
    look_for("256")
    assert 4 <= opened.run(f"{shown}.length") <= 20
    assert opened.run(f"{more}.offsetParent === null")
    look_for("")
    opened.run(f"{more}.click()")
    assert opened.run(f"{shown}.length") == 80
    assert opened.run(f"{more}.textContent") == "Show the first 20 of 80 rows"
    opened.run(f"{more}.click()")
    assert opened.run(f"{shown}.length") == 20


def test_the_theme_changes_and_stays(opened: Browser, page: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    assert opened.run(background) == "rgb(255, 255, 255)"
    opened.until("document.querySelector('figure').dataset.drawn === 'light'")
    opened.run("document.getElementById('theme').click()")
    assert opened.run(background) == "rgb(20, 22, 26)"
    opened.until("document.querySelector('figure').dataset.drawn === 'dark'")
    label = "getComputedStyle(document.querySelector('figure svg text')).fill"
    assert opened.run(label) == "rgb(230, 230, 230)"
    opened.open(page.as_uri())
    assert opened.run(background) == "rgb(20, 22, 26)", "it is remembered"
    opened.run("document.getElementById('theme').click()")
    assert opened.run(background) == "rgb(255, 255, 255)"


def test_without_a_choice_the_system_decides(opened: Browser, page: Path) -> None:
    opened.prefer("dark")
    opened.open(page.as_uri())
    opened.until("getComputedStyle(document.body).backgroundColor === 'rgb(20, 22, 26)'")
    opened.until("document.querySelector('figure').dataset.drawn === 'dark'")
    opened.prefer("light")
    opened.until("document.querySelector('figure').dataset.drawn === 'light'")


def test_a_phone_shows_it_without_scrolling_sideways(opened: Browser) -> None:
    opened.resize(375, 800, phone=True)
    assert drawn(opened)
    assert opened.run("innerWidth") == 375
    assert opened.run("document.documentElement.scrollWidth") == 375
    too_wide = """[...document.querySelectorAll("body *")].filter((one) => {
        if (one.closest(".scroll, .canvas, pre, svg")) return false;
        const box = one.getBoundingClientRect();
        return box.width > 0 && box.right > 375.5;
    }).map((one) => one.outerHTML.slice(0, 200))"""
    assert opened.run(too_wide) == []
    curves = "[...document.querySelectorAll('figure[data-fit=curves] svg')].map((one) => one.clientWidth)"
    assert all(width <= 375 for width in opened.run(curves))


def test_a_phone_shows_names_and_values_whole(opened: Browser, climbs: bytes, tmp_path: Path) -> None:
    path = tmp_path / "climbs.html"
    path.write_bytes(climbs)
    opened.resize(390, 800, phone=True)
    opened.open(path.as_uri())
    assert drawn(opened) == 3
    charts = json.loads(
        opened.run("""JSON.stringify([...document.querySelectorAll("figure[data-fit=ladder]")].map(
        (one) => [one.querySelector(".canvas").clientWidth, one.querySelector("svg").getBoundingClientRect().width,
                  [...one.querySelectorAll("svg text")].map((text) => text.textContent)]))""")
    )
    assert len(charts) == 2
    for room, width, texts in charts:
        assert 200 < width <= room
        assert [text for text in texts if "…" in text] == []
    assert "warp_tile_double_buffer" in charts[1][2]


def test_hostile_strings_stay_text(opened: Browser) -> None:
    drawn(opened)
    assert opened.run("document.querySelectorAll('img, iframe, object, body script:not([type]) ~ img').length") == 0
    assert opened.run("document.querySelectorAll('script:not([type])').length") == 2
    texts = opened.run("[...document.querySelectorAll('bdi')].map((one) => one.textContent)")
    assert sum(HOSTILE in text for text in texts) > 20
    assert opened.run("[...document.querySelectorAll('bdi')].every((one) => one.children.length === 0)")
    # In charts too, where they are labels and not elements.
    labels = opened.run("[...document.querySelectorAll('figure svg text')].map((one) => one.textContent)")
    assert any(label.startswith("</script><script>alert") for label in labels)


def test_a_series_tells_its_figures_under_the_pointer(opened: Browser) -> None:
    opened.until("document.querySelector('#part-2 figure[data-fit=curves]').dataset.drawn")
    place = """(() => {
        const figure = document.querySelector("#part-2 figure[data-fit=curves]");
        figure.scrollIntoView();
        const box = figure.querySelector("svg .mark-symbol path").getBoundingClientRect();
        return JSON.stringify([box.x + box.width / 2, box.y + box.height / 2]);
    })()"""
    x, y = json.loads(opened.run(place))
    for shift in (3, 1):
        opened.send("Input.dispatchMouseEvent", type="mouseMoved", x=x + shift, y=y + shift)
    opened.until("!document.getElementById('tip').hidden")
    said = opened.run("document.getElementById('tip').textContent")
    assert re.search(r"of: \w+", said)
    assert "TFLOP/s (float32): " in said
    opened.send("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    opened.until("document.getElementById('tip').hidden")


@needs_compiler
def test_a_kernel_unfolds_where_a_link_leads_and_shows_its_code(opened: Browser) -> None:
    assert not opened.run(f"document.getElementById('{NAME}').open")
    opened.run(f"document.querySelector('a[href=\"#{NAME}\"]').click()")
    opened.until(f"document.getElementById('{NAME}').open")
    opened.run(f"document.querySelector('#{NAME} details.code summary').click()")
    opened.until(f"document.querySelector('#{NAME} pre').textContent.includes('FFMA')")


def test_the_recorded_climbs_are_drawn(opened: Browser, climbs: bytes, tmp_path: Path) -> None:
    path = tmp_path / "climbs.html"
    path.write_bytes(climbs)
    opened.open(path.as_uri())
    assert drawn(opened) == 3


@needs_compiler
def test_a_climb_with_its_explanations_is_less_than_three_megabytes(climbs: bytes, explained: Study) -> None:
    kernel, parts = find_kernel("naive"), [part_of(Path("bench.json"), gpu_bench())]
    bare, whole = (len(render(Page(parts, [section("naive", kernel, [], one)]))) for one in (None, explained))
    assert whole > bare + 20_000
    # A rung comes to 1.7 times as much as this one in the mean over the 18 of a GPU.
    assert len(climbs) + 18 * 2 * (whole - bare) < 3 << 20


@needs_compiler
def test_paper_has_every_chart_and_column_in_light_colours(opened: Browser, page: Path) -> None:
    opened.resize(1200, 800)
    opened.prefer("dark")
    opened.open(page.as_uri())
    assert opened.run("document.querySelectorAll('figure svg').length") < opened.run(
        "document.querySelectorAll('figure').length"
    ), "charts are drawn when they come into view"
    # The handler of the page ran before this one, and what it began has ended when the browser lays the paper out.
    opened.run("""addEventListener("afterprint", () => {
        window.printed = [...document.querySelectorAll("figure")].map(
            (one) => one.querySelectorAll("svg path, svg text").length);
        window.codes = [...document.querySelectorAll("pre[data-packed]")].map((one) => one.textContent);
    })""")
    pdf = base64.b64decode(opened.send("Page.printToPDF", printBackground=True)["data"])
    assert min(opened.run("window.printed")) > 10
    assert all("FFMA" in code for code in opened.run("window.codes"))
    assert placed(pdf) > 20 * opened.run("document.querySelectorAll('figure').length")
    try:
        opened.send("Emulation.setEmulatedMedia", media="print", features=[])
        opened.resize(718, 900)
        opened.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert opened.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        wide = """[...document.querySelectorAll("td, th, pre, svg")].filter(
            (one) => one.getBoundingClientRect().right > 719).map((one) => one.outerHTML.slice(0, 120))"""
        assert opened.run(wide) == []
    finally:
        opened.send("Emulation.setEmulatedMedia", media="", features=[])
