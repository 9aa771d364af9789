"""Kernels of a folder's `.cu` files, called on NumPy arrays on the emulated GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab import launch
from gemmlab.devices.emulated import EmulatedDevice

Array = np.ndarray[Any, Any]
Call = Callable[..., list[Array]]


def caller(folder: Path, architecture: str) -> Call:
    """`call(file, kernel, grid, threads, *args)`: the array arguments afterwards; any hazard fails the test."""
    device = EmulatedDevice(architecture)

    def run(file: str, kernel: str, grid: Any, threads: Any, *args: Any, smem_bytes: int = 0) -> list[Array]:
        path = folder / f"{file}.cu"
        ran = launch(path, kernel, grid, threads, args, device=device, smem_bytes=smem_bytes, races=True)
        assert not ran.hazards, "\n".join(hazard.explain() for hazard in ran.hazards)
        assert isinstance(ran.outputs, list)
        return ran.outputs

    return run


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)
