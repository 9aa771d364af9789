"""The compiler in this process, where tests can look on."""

from __future__ import annotations

import pytest

from gemmlab.toolchain import apart


@pytest.fixture(autouse=True)
def compiler_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "is_foreign", lambda _program: False)
