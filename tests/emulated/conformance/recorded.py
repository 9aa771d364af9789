"""What a GPU made of the conformance kernels: the bits in `tests/data/conformance/ARCH`."""

from __future__ import annotations

import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case
from edges import Bits

DATA = Path(__file__).parents[2] / "data" / "conformance"
ARCH = "sm_90"
"""What the recording GPU runs; other architectures' code is compared with the same kernels' bits from there."""


def available() -> bool:
    """Whether there is a recording."""
    return (DATA / ARCH / "record.json").exists()


@cache
def about() -> dict[str, Any]:
    """Device, driver, compiler and the digest of each cubin."""
    found: dict[str, Any] = json.loads((DATA / ARCH / "record.json").read_text())
    return found


@cache
def _names(file: str) -> tuple[str, ...]:
    path = DATA / ARCH / f"{file}.npz"
    if not path.exists():
        return ()
    with zipfile.ZipFile(path) as archive:
        return tuple(sorted(name.removesuffix(".npy") for name in archive.namelist() if name != "inputs.npy"))


def bits(case: Case) -> Bits | None:
    """A kernel's recorded output; `None` where it was not recorded, or with other inputs."""
    if _input_sums(case.file).get(case.kernel) != case.input_sum():
        return None
    with np.load(DATA / ARCH / f"{case.file}.npz", allow_pickle=False) as stored:
        found: Bits = stored[case.kernel]
        return found


@cache
def _input_sums(file: str) -> dict[str, int]:
    """CRC of what each recorded kernel was given."""
    names = _names(file)
    if not names:
        return {}
    with np.load(DATA / ARCH / f"{file}.npz", allow_pickle=False) as stored:
        return dict(zip(names, (int(crc) for crc in stored["inputs"]), strict=True))
