"""Record the results of wgmma on a GPU of sm_90a: `python makers/wgmma_probe.py --out tests/data/wgmma [--device
cuda]`.

Files: `maps.npz` (the bytes that descriptors name), `bits.npz` and `least.npz` (accumulators of small tiles),
`sums.npz` (checksums of the rows of many tiles). The operands follow from their names
(`tests/emulated/wgmma/wgmma_tiles.py`). Arrays that the files have already are not recorded again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / "tests/emulated" / name) for name in ("wgmma", "conformance")]

from wgmma_record import jobs  # noqa: E402 - it lies with the tests

from recorded_device import write_device  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, wanted in jobs().items():
        path, start = options.out / f"{name}.npz", time.perf_counter()
        found = dict(np.load(path, allow_pickle=False)) if path.exists() else {}
        new = [array for array in wanted if array not in found]
        for array in new:
            found[array] = wanted[array](options.device)
            # Each array is stored at once: a kernel that breaks takes the process's GPU context with it.
            np.savez_compressed(path, **found)
        print(f"{name}: {len(new)} new arrays, {time.perf_counter() - start:.1f} s", flush=True)
    write_device(options.out, options.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
