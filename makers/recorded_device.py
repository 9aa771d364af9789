"""The file `record.json`, which describes the GPU on which a maker recorded bits."""

from __future__ import annotations

import json
from pathlib import Path

from gemmlab.devices.select import open_device


def write_device(folder: Path, device: str) -> None:
    """Write `record.json` into the folder: the device's name, driver and compute capability."""
    info = open_device(device).describe()
    facts = {key: info.facts[key] for key in ("driver", "compute_capability") if key in info.facts}
    record = {"schema": 1, "device": info.name, **facts}
    (folder / "record.json").write_text(json.dumps(record, indent=1, default=str) + "\n", encoding="utf-8")
