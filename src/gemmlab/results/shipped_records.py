"""Climbs that were recorded elsewhere and travel with the package: what is shown where there is no such device."""

from __future__ import annotations

from pathlib import Path

import gemmlab
from gemmlab.core.records import Record
from gemmlab.kernels.renamed import read_record

_PACKAGE = Path(gemmlab.__file__).parent
FOLDERS = (_PACKAGE / "recorded", _PACKAGE.parents[1] / "benchmarks" / "results")
"""Where a wheel has them, and where a checkout does."""
NAME = "climb-cuda*.json"
PROFILE = "ncu.json"


def recorded_climb(op: str) -> Record | None:
    """The climb of an operation's GPU ladder; `None` where none was recorded.

    Raises `RecordError` for a file that cannot be read.
    """
    for folder in FOLDERS:
        for path in sorted(folder.glob(f"*/{NAME}")):
            record = read_record(path, notice=False)
            if record.op == op:
                return record
    return None


def recorded_profile(gpu: str) -> Path | None:
    """The record of Nsight Compute's figures from a GPU, named as its folder is: `"h200"`; `None` where none is."""
    if not gpu.isalnum():
        return None
    paths = [folder / gpu.lower() / PROFILE for folder in FOLDERS]
    return next((path for path in paths if path.is_file()), None)


def profiled_gpus() -> list[str]:
    """What `recorded_profile` finds something by."""
    return sorted({path.parent.name for folder in FOLDERS for path in folder.glob(f"*/{PROFILE}")})


def where_recorded(record: Record) -> str:
    """`"NVIDIA H200, 2026-11-21, gemmlab 0.1.0"`."""
    seen = record.environment
    return f"{record.device.get('name')}, {str(seen.get('time_utc', ''))[:10]}, gemmlab {seen.get('gemmlab', '?')}"
