"""The compiler in this process, where tests can look on."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmlab.toolchain import apart
from support.compiled_code import compilations, empty_cache


@pytest.fixture(autouse=True)
def compiler_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "is_foreign", lambda _program: False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    return empty_cache(tmp_path, monkeypatch)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were compiled, in order."""
    return compilations(monkeypatch)
