"""The architectures that kernels of the catalog are tested on: each that the kernel's code runs on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from gemmlab.core.architecture import runs
from gemmlab.devices.emulated import ARCHITECTURES
from gemmlab.kernels.kernel import Kernel


def architectures(kernel: Kernel) -> tuple[str, ...]:
    """Return the architectures that a kernel runs on, of those that every kernel is compiled for if it can be."""
    return tuple(arch for arch in ARCHITECTURES if runs(kernel.arch, arch))


def on_architectures(kernels: Iterable[Kernel]) -> list[Any]:
    """Return parameters `(kernel, arch)`, one of each kernel for each architecture that it runs on."""
    return [
        pytest.param(kernel, arch, id=f"{kernel.id}-{arch}") for kernel in kernels for arch in architectures(kernel)
    ]
