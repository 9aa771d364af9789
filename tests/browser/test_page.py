"""A page in a real browser: it draws, sorts, changes colours, fits a phone, asks for nothing, and believes no one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gemmlab.kernels.catalog import find_kernel
from gemmlab.pages.page import Page, render
from gemmlab.pages.parts import part_of
from gemmlab.pages.sections import section
from gemmlab.pages.studies import Study
from support.chromium import Browser
from support.cuda_source import needs_compiler
from support.report_in_browser import drawn
from support.report_records import HOSTILE, gpu_bench

pytestmark = pytest.mark.slow

NAME = "kernel-naive"


@needs_compiler
def test_every_chart_is_drawn_and_nothing_is_asked_for(displayed: Browser, report: Path) -> None:
    figures = displayed.run("document.querySelectorAll('figure').length")
    assert figures == drawn(displayed) >= 8
    marks = "[...document.querySelectorAll('figure svg')].map((one) => one.querySelectorAll('path, text').length)"
    assert min(displayed.run(marks)) > 10
    titles = displayed.run("[...document.querySelectorAll('figure h4')].map((one) => one.textContent)")
    assert {"The ladder", "The ladder at 2048³", "Speed by size", "Roofline on H200"} <= set(titles)
    assert displayed.requests() == [report.as_uri()]


def test_the_policy_of_the_page_keeps_scripts_out(displayed: Browser) -> None:
    displayed.run("""(() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.body.append(script);
        const image = document.createElement("img");
        image.src = "https://example.org/pixel.png";
        document.body.append(image);
    })()""")
    assert displayed.run("window.ran === undefined")
    displayed.until("performance.now() > 0")
    refused = displayed.complaints()
    assert any("script" in text for text in refused)
    assert any("img-src" in text or "image" in text for text in refused)
    displayed.events.clear()


def test_the_theme_changes_and_stays(displayed: Browser, report: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    assert displayed.run(background) == "rgb(255, 255, 255)"
    displayed.until("document.querySelector('figure').dataset.drawn === 'light'")
    displayed.run("document.getElementById('theme').click()")
    assert displayed.run(background) == "rgb(20, 22, 26)"
    displayed.until("document.querySelector('figure').dataset.drawn === 'dark'")
    label = "getComputedStyle(document.querySelector('figure svg text')).fill"
    assert displayed.run(label) == "rgb(230, 230, 230)"
    displayed.open(report.as_uri())
    assert displayed.run(background) == "rgb(20, 22, 26)", "it is remembered"
    displayed.run("document.getElementById('theme').click()")
    assert displayed.run(background) == "rgb(255, 255, 255)"


def test_without_a_choice_the_system_decides(displayed: Browser, report: Path) -> None:
    displayed.prefer("dark")
    displayed.open(report.as_uri())
    displayed.until("getComputedStyle(document.body).backgroundColor === 'rgb(20, 22, 26)'")
    displayed.until("document.querySelector('figure').dataset.drawn === 'dark'")
    displayed.prefer("light")
    displayed.until("document.querySelector('figure').dataset.drawn === 'light'")


def test_hostile_strings_stay_text(displayed: Browser) -> None:
    drawn(displayed)
    assert displayed.run("document.querySelectorAll('img, iframe, object, body script:not([type]) ~ img').length") == 0
    assert displayed.run("document.querySelectorAll('script:not([type])').length") == 2
    texts = displayed.run("[...document.querySelectorAll('bdi')].map((one) => one.textContent)")
    assert sum(HOSTILE in text for text in texts) > 20
    assert displayed.run("[...document.querySelectorAll('bdi')].every((one) => one.children.length === 0)")
    # In charts too, where they are labels and not elements.
    labels = displayed.run("[...document.querySelectorAll('figure svg text')].map((one) => one.textContent)")
    assert any(label.startswith("</script><script>alert") for label in labels)


def test_a_series_tells_its_figures_under_the_pointer(displayed: Browser) -> None:
    displayed.until("document.querySelector('#part-2 figure[data-fit=curves]').dataset.drawn")
    place = """(() => {
        const figure = document.querySelector("#part-2 figure[data-fit=curves]");
        figure.scrollIntoView();
        const box = figure.querySelector("svg .mark-symbol path").getBoundingClientRect();
        return JSON.stringify([box.x + box.width / 2, box.y + box.height / 2]);
    })()"""
    x, y = json.loads(displayed.run(place))
    for shift in (3, 1):
        displayed.send("Input.dispatchMouseEvent", type="mouseMoved", x=x + shift, y=y + shift)
    displayed.until("!document.getElementById('tip').hidden")
    said = displayed.run("document.getElementById('tip').textContent")
    assert re.search(r"of: \w+", said)
    assert "TFLOP/s (float32): " in said
    displayed.send("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    displayed.until("document.getElementById('tip').hidden")


@needs_compiler
def test_a_kernel_unfolds_where_a_link_leads_and_shows_its_code(displayed: Browser) -> None:
    assert not displayed.run(f"document.getElementById('{NAME}').open")
    displayed.run(f"document.querySelector('a[href=\"#{NAME}\"]').click()")
    displayed.until(f"document.getElementById('{NAME}').open")
    displayed.run(f"document.querySelector('#{NAME} details.code summary').click()")
    displayed.until(f"document.querySelector('#{NAME} pre').textContent.includes('FFMA')")


def test_the_recorded_climbs_are_drawn(displayed: Browser, climbs: bytes, tmp_path: Path) -> None:
    path = tmp_path / "climbs.html"
    path.write_bytes(climbs)
    displayed.open(path.as_uri())
    assert drawn(displayed) == 3


@needs_compiler
def test_a_climb_with_its_explanations_is_less_than_three_megabytes(climbs: bytes, naive_study: Study) -> None:
    kernel, parts = find_kernel("naive"), [part_of(Path("bench.json"), gpu_bench())]
    bare, whole = (len(render(Page(parts, [section("naive", kernel, [], one)]))) for one in (None, naive_study))
    assert whole > bare + 20_000
    # A rung comes to 1.7 times as much as this one in the mean over the 18 of a GPU.
    assert len(climbs) + 18 * 2 * (whole - bare) < 3 << 20
