"""Compiling CUDA C++ that stands in a test."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any

import pytest

from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain.compilation import compile_cubin

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120")


def _missing() -> list[str]:
    found = {distribution.name for distribution in metadata.distributions()}
    return [name for name in ("cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-nvdisasm") if name not in found]


needs_compiler = pytest.mark.skipif(bool(_missing()), reason=f"not installed: {', '.join(_missing())}")


def program(source: str, entry: str, arch: str = "sm_90", **facts: Any) -> Program:
    return Program("probe", "cuda", arch, entry, "in a test", lambda: source, **facts)


@cache
def compiled(source: str, entry: str, arch: str = "sm_90") -> Artifact:
    """The artifact, made once a test run."""
    return compile_cubin(program(source, entry, arch))
