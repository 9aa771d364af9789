"""The compiler in this process, where tests can look on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain import apart, compilation
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


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Entries that have been compiled, noted each time."""
    notes: list[str] = []
    compile_cubin = compilation.compile_cubin

    def noted(asked: Program, *rest: Any) -> Artifact:
        notes.append(asked.entry)
        return compile_cubin(asked, *rest)

    monkeypatch.setattr(compilation, "compile_cubin", noted)
    return notes
