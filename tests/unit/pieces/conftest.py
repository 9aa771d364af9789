"""Operands and a result in mapped files, for products in pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.resumed_pieces import K, M, N


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    made = {}
    for name, shape in (("a", (M, K)), ("b", (K, N)), ("c", (M, N)), ("out", (M, N))):
        made[name] = np.memmap(tmp_path / name, np.float32, "w+", shape=shape)
        made[name][:] = np.nan if name == "out" else rng.random(shape, dtype=np.float32)
        made[name].flush()
    return made
