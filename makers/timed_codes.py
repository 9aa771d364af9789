"""Store the machine code of every recorded time, compiled by the checkout whose code was timed.

    git worktree add --detach FOLDER 8a23a7e0
    python makers/timed_codes.py FOLDER --out codes.npz
    python makers/predict_ladder.py FOLDER --codes codes.npz

The rungs have changed since the times of benchmarks/results/h200 were recorded. So the model is judged with this code.
The program says for how many times the code has the recorded digest. No GPU is needed; it takes some minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def codes(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name of each contestant and its code, built with the modules of the checkout."""
    sys.path[:0] = [str(folder / "src"), str(folder / "makers")]
    from gemmlab.devices.emulated import EmulatedDevice
    from gemmlab.kernels.catalog import find_kernel
    from gemmlab.ops.catalog import find_op
    from gemmlab.toolchain.cache import encode

    # That of the checkout, which has other parameters.
    recorded = import_module("predict_ladder").recorded
    sizes = {"gemm": "256x256x64", "reduce": "2^14"}
    device, found = EmulatedDevice("sm_90", check_races=False), dict[str, Any]()
    for item in recorded():
        name, facts = item.result.contestant, item.result.facts
        if name not in found:
            kernel, op = find_kernel(item.sample.kernel), find_op(item.op)
            config = kernel.configure(facts["config"])
            problem = op.parse_sizes(sizes[item.op])[0]
            found[name] = device.build(kernel.program(kernel.instantiate(config, op.scalars(problem)), "sm_90"))
            kept = replace(found[name], texts={"sass": found[name].texts["sass"]})
            yield name, np.frombuffer(encode(kept), np.uint8)
        if facts["code_sha256"] != found[name].digest:
            print(f"{name} at {item.result.label}: other code than was timed", file=sys.stderr)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="checkout of the commit whose code was timed")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    known = dict(codes(asked.folder))
    arrays = {f"array_{number}": values for number, values in enumerate(known.values())}
    np.savez_compressed(asked.out, allow_pickle=False, names=np.array(list(known)), **arrays)
    print(f"{len(known)} codes, {asked.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
