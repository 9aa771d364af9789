"""Kernels whose pictures are tested."""

from __future__ import annotations

from functools import cache

from gemmlab.kernels.catalog import find_kernel
from gemmlab.plots.pictures.drawing import Subject


@cache
def subject(kernel: str, **config: int) -> Subject:
    return Subject(find_kernel(kernel), config=config)
