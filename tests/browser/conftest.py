"""One browser for all tests of this folder; without one they are skipped and say how to get it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.chromium import Browser, executable


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
