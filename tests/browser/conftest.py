"""One browser for all tests of this folder; without one they are skipped and say how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gemmlab.analysis.listing.kernel_listing import explained_listing
from gemmlab.pages.kernel_page import kernel_page
from gemmlab.pages.studies import Request, Study, study
from support.chromium import Browser, executable
from support.kernel_pages import freshly
from support.page_kernels import explained, user_file
from support.report_in_browser import recorded_climbs, shown_afresh, whole_report


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A running Chromium, where one is installed."""
    program = executable()
    if program is None:
        pytest.skip("no Chromium: apt-get install chromium")
    started = Browser(program, tmp_path_factory.mktemp("browser") / "profile")
    try:
        yield started
    finally:
        started.close()


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a user's kernel with a race, a bank conflict and a header."""
    folder = tmp_path_factory.mktemp("own")
    path = folder / "page.html"
    path.write_bytes(kernel_page([explained_listing(explained(str(user_file(folder))))]))
    return path


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two kernels side by side."""
    path = tmp_path_factory.mktemp("two") / "page.html"
    path.write_bytes(kernel_page([explained_listing(explained(name)) for name in ("naive", "block_tile")]))
    return path


@pytest.fixture
def opened(browser: Browser, own: Path) -> Iterator[Browser]:
    yield from freshly(browser, own)


@pytest.fixture
def pair(browser: Browser, two: Path) -> Iterator[Browser]:
    yield from freshly(browser, two)


@pytest.fixture(scope="session")
def naive_study() -> Study | None:
    """`naive`, with its pictures, where there is a compiler."""
    found = study(Request("naive", arch="sm_90"))
    return found if isinstance(found, Study) else None


@pytest.fixture(scope="session")
def climbs() -> bytes:
    return recorded_climbs()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory, naive_study: Study | None) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_bytes(whole_report(naive_study))
    return path


@pytest.fixture
def displayed(browser: Browser, report: Path) -> Iterator[Browser]:
    yield from shown_afresh(browser, report)
