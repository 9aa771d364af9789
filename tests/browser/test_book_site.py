"""The site in a real browser, from files: no server, no network, search, both colours, desktop and phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from build_book import build
from support.chromium import Browser

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGES = ("index.html", "rungs/async_copy.html", "ladder-gpu.html", "glossary.html", "api.html", "claims.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book")
    assert build(folder) == 0
    return folder / "html"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_page_fits_and_asks_for_nothing(browser: Browser, site: Path, name: str, width: int, scheme: str) -> None:
    browser.resize(width, 844, phone=width < 500)
    browser.prefer(scheme)
    browser.open((site / name).as_uri())
    assert browser.complaints() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    red, green, blue = browser.run("getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3)")
    assert (float(red) + float(green) + float(blue) > 600) == (scheme == "light")


def test_search_finds_pages_without_a_server(browser: Browser, site: Path) -> None:
    browser.resize(1280, 900)
    browser.open((site / "search.html").as_uri() + "?q=conflict")
    browser.until("document.querySelectorAll('#search-results li a').length > 5")
    assert browser.complaints() == []
    assert "rungs/conflict_free.html" in browser.run(
        "[...document.querySelectorAll('#search-results li a')].map((one) => one.href).join(' ')"
    )


def test_one_page_leads_to_the_next_and_back(browser: Browser, site: Path) -> None:
    browser.open((site / "rungs/naive.html").as_uri())
    assert browser.run("document.querySelector('a.prev-page').href").endswith("rungs/naive_strided.html")
    browser.run("setTimeout(() => document.querySelector('a.next-page').click())")
    browser.until("location.href.endsWith('rungs/block_tile.html') && document.readyState === 'complete'")


def test_colours_change_at_a_click(browser: Browser, site: Path) -> None:
    browser.prefer("light")
    browser.open((site / "index.html").as_uri())
    colour = "getComputedStyle(document.body).backgroundColor"
    before = browser.run(colour)
    browser.run("document.querySelector('.theme-toggle').click()")
    browser.until(f"{colour} !== {before!r}")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.sampled(6)
def test_paper_cuts_nothing_and_has_no_menu_over_the_text(browser: Browser, site: Path, name: str) -> None:
    browser.open((site / name).as_uri())
    try:
        browser.send("Emulation.setEmulatedMedia", media="print", features=[])
        browser.resize(718, 900)
        wide = """[...document.querySelectorAll(".content :is(td, pre, svg, img)")].filter((one) =>
            one.getBoundingClientRect().right > 719 || one.scrollWidth > one.clientWidth + 1 && one.tagName === "PRE"
        ).map((one) => one.outerHTML.slice(0, 200))"""
        assert browser.run(wide) == []
        assert browser.run("document.querySelector('.skip-to-content').getBoundingClientRect().height") == 0
    finally:
        browser.send("Emulation.setEmulatedMedia", media="", features=[])
