"""The kernel page in a browser: how it is opened and asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from support.chromium import Browser

READY = "document.documentElement.dataset.ready !== undefined"
SHOWN = "[...document.querySelectorAll('.frame')].filter((one) => one.offsetParent).map((one) => one.dataset.frame)"
STORE = "[...document.querySelectorAll('#code td[data-row]')].find((one) => /STS/.test(one.textContent))"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def freshly(browser: Browser, page: Path) -> Iterator[Browser]:
    """Yield the browser with the page on a wide light screen; then require no complaint and no request."""
    browser.prefer("light")
    browser.resize(1400, 900)
    browser.open_afresh(page.as_uri())
    browser.until(READY)
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]
