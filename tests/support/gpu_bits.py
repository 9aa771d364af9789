"""Arrays that a GPU gave, from the files that a maker of records wrote."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True, slots=True)
class GpuBits:
    """The files `*.npz` in a folder of tests/data, written by a maker."""

    folder: str
    maker: str

    def all_of(self, file: str) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of a file by name; none if the file has not been recorded."""
        return _arrays(DATA / self.folder / f"{file}.npz")

    def one_of(self, file: str, name: str) -> npt.NDArray[Any]:
        """Return a recorded array; the test is skipped if there is none."""
        if name not in self.all_of(file):
            pytest.skip(f"no GPU's {name} in tests/data/{self.folder}/{file}.npz: makers/{self.maker}.py records it")
        return self.all_of(file)[name]


@cache
def _arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    return dict(np.load(path, allow_pickle=False)) if path.exists() else {}
