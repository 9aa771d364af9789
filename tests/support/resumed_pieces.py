"""A product in pieces that a test begins, and resumes from its journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from support.least_pieces import Stopped, stop_at

Float32Array = npt.NDArray[np.float32]
M, N, K, MEMORY = 500, 400, 300, 700_000


def lines(folder: Path) -> list[dict[str, Any]]:
    whole = (folder / "journal").read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in whole]


def begin(files: dict[str, Any], folder: Path, at: int = 3, **how: Any) -> None:
    """Compute a few pieces."""
    with pytest.raises(Stopped):
        resume(files, folder, progress=stop_at(at), **how)


def resume(files: dict[str, Any], folder: Path, **how: Any) -> Any:
    given = {"a": files["a"], "b": files["b"], "out": files["out"], "memory_bytes": MEMORY, **how}
    return gemmlab.gemm(**given, checkpoint=folder / "journal")
