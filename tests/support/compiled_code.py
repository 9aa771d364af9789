"""A cache of a test's own, a program for a CPU, and what was compiled of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.program import Artifact, Program
from gemmlab.devices.cpu import CpuDevice
from gemmlab.ir.compile import compile_object
from gemmlab.kernels.catalog import find_kernel
from gemmlab.toolchain import cache

ARTIFACT = Artifact(
    "k", "object", "x86_64:8:cpu", "entry", b"\x00code\xff" * 50, "d" * 64, "llvm 1", {"workspace_bytes": 3}, ("p", "q")
)


def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    place = tmp_path / "deep" / "cache"
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(place))
    cache._warn.cache_clear()
    return place


def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the text of each compilation from now on."""
    notes: list[str] = []

    def noted(text: str, *args: Any, **options: Any) -> bytes:
        notes.append(text)
        return compile_object(text, *args, **options)

    monkeypatch.setattr("gemmlab.ir.build.compile_object", noted)
    return notes


def program() -> Program:
    kernel = find_kernel("naive_ijk")
    return kernel.program(kernel.configure(), CpuDevice().target({}))


def build() -> Artifact:
    return CpuDevice().build(program())
