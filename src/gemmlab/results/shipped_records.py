"""Records that come with the package, to be shown on machines without the device."""

from __future__ import annotations

from pathlib import Path

import gemmlab
from gemmlab.core.records import Record
from gemmlab.kernels.aliases import read_record

_PACKAGE = Path(gemmlab.__file__).parent
FOLDERS = (_PACKAGE / "recorded", _PACKAGE.parents[1] / "benchmarks" / "results")
"""Folders of the records in a wheel and in a checkout."""
NAME = "climb-cuda*.json"
PROFILE = "ncu.json"


def recorded_climb(op: str) -> Record | None:
    """Return the first recorded climb of an operation's GPU ladder; `None` if there is none.

    Raises `RecordError` for a file that cannot be read.
    """
    for folder in FOLDERS:
        for path in sorted(folder.glob(f"*/{NAME}")):
            record = read_record(path, notice=False)
            if record.op == op:
                return record
    return None


def recorded_profile(gpu: str) -> Path | None:
    """Return the path of the Nsight Compute record of a GPU, such as `"h200"` (its folder's name); else `None`."""
    if not gpu.isalnum():
        return None
    paths = [folder / gpu.lower() / PROFILE for folder in FOLDERS]
    return next((path for path in paths if path.is_file()), None)


def profiled_gpus() -> list[str]:
    """Return the names of the GPUs of which there is a record (`recorded_profile`)."""
    return sorted({path.parent.name for folder in FOLDERS for path in folder.glob(f"*/{PROFILE}")})


def where_recorded(record: Record) -> str:
    """Return device, date and version of a record, such as `"NVIDIA H200, 2026-11-21, gemmlab 0.1.0"`."""
    facts = record.environment
    return f"{record.device.get('name')}, {str(facts.get('time_utc', ''))[:10]}, gemmlab {facts.get('gemmlab', '?')}"
