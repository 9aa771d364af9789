"""Run the launches on a device and keep their outputs' bits: `python record_bits.py --device cuda --out FILE.npz`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from launches import launches

from gemmlab.devices.select import open_device


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    device = open_device(options.device)
    kept: dict[str, np.ndarray] = {}
    for number, result in enumerate(launches(device)):
        for part, output in enumerate(result.outputs):
            kept[f"{number:03d} {part} {result.name}"] = np.ascontiguousarray(output).reshape(-1).view(np.uint8)
    info = device.describe()
    kept["about"] = np.frombuffer(json.dumps({"device": info.name, "id": info.id}).encode(), np.uint8)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(options.out, **kept)  # type: ignore[arg-type]
    sys.stdout.write(f"{len(kept) - 1} arrays\n")


if __name__ == "__main__":
    main()
