"""Record the results of mma.sync with integers and doubles on a GPU of sm_90, in `tests/data/warp_matrices.npz`.

    python makers/warp_matrix_probe.py [--device cuda] [--out FILE]

The operands are those of `tests/emulated/wgmma/warp_matrix_cases.py`; tests compare the emulator with the file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests/emulated/wgmma"))

from warp_matrix_cases import record  # noqa: E402 - it lies with the tests


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=ROOT / "tests/data/warp_matrices.npz")
    options = parser.parse_args()
    found: dict[str, Any] = dict(record(options.device))
    np.savez_compressed(options.out, **found)
    print(f"{sum(each.size for each in found.values())} results of {len(found)} kernels: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
