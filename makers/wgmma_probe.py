"""Record what wgmma gives on a GPU of sm_90a: `python makers/wgmma_probe.py --out tests/data/wgmma [--device cuda]`.

Three files: `bits.npz` (accumulators of small tiles), `sums.npz` (checksums of the rows of many tiles), `maps.npz` (the
bytes that descriptors name). The operands follow from their names (`tests/emulated/wgmma/wgmma_tiles.py`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / "tests/emulated" / name) for name in ("wgmma", "conformance")]

from wgmma_record import bits_of_tiles, maps, sums_of_tiles  # noqa: E402 - beside the tests

from gemmlab.devices.select import open_device  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, records in (("maps", maps), ("bits", bits_of_tiles), ("sums", sums_of_tiles)):
        start = time.perf_counter()
        found = {}
        for form, values in records(options.device):
            found[form] = values
            # Each array is kept at once: a kernel that breaks takes the process's GPU context with it.
            np.savez_compressed(options.out / f"{name}.npz", **found)
        print(f"{name}: {len(found)} arrays, {time.perf_counter() - start:.1f} s", flush=True)
    info = open_device(options.device).describe()
    facts = {key: info.facts[key] for key in ("driver", "compute_capability") if key in info.facts}
    record = {"schema": 1, "device": info.name, **facts}
    (options.out / "record.json").write_text(json.dumps(record, indent=1, default=str) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
