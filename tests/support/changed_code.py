"""Kernels of the catalog whose machine code tests change."""

from __future__ import annotations

from functools import cache

from gemmlab.kernels.catalog import find_kernel
from gemmlab.verify.changed_code import Build, build_of


@cache
def subject(kernel: str, arch: str, size: str, **config: int) -> Build:
    """A kernel's build for a problem."""
    return build_of(find_kernel(kernel), arch, size, config)
