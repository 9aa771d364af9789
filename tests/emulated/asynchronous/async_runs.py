"""Launches of the kernels beside this file, on the emulator or, to check the tests themselves, on a GPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy.typing as npt

from gemmlab import launch
from gemmlab.core.hazard import Hazard
from gemmlab.launching import Launched

HERE = Path(__file__).parent
DEVICE = os.environ.get("GEMMLAB_ASYNC_DEVICE", "emulated:sm_90")
"""`cuda:0` runs the tests of results on a GPU."""
Array = npt.NDArray[Any]


def ran(file: str, kernel: str, threads: int, *args: Any, grid: Any = 1, **more: Any) -> list[Array]:
    """Return the arrays that a kernel leaves, which must have no hazard."""
    done = launch(HERE / file, kernel, grid, threads, args, device=DEVICE, **more)
    assert not done.hazards, [hazard.explain() for hazard in done.hazards or ()]
    return outputs(done)


def outputs(done: Launched) -> list[Array]:
    """The arrays of a launch whose arguments were given in order."""
    assert isinstance(done.outputs, list)
    return done.outputs


def hazards(file: str, kernel: str, threads: int, *args: Any, grid: Any = 1, **more: Any) -> list[Hazard]:
    """Return the hazards of a kernel on the emulator."""
    done = launch(HERE / file, kernel, grid, threads, args, device="emulated:sm_90", **more)
    return list(done.hazards or ())


def line_of(file: str, mark: str) -> int:
    """The number of the one line of a file that has `// mark` in it."""
    found = [n for n, text in enumerate((HERE / file).read_text().splitlines(), 1) if text.endswith(f"// {mark}")]
    assert len(found) == 1, (mark, found)
    return found[0]
