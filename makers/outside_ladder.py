"""Predict kernels of siboehm/SGEMM_CUDA on an RTX A6000: `python makers/outside_ladder.py FOLDER`.

FOLDER is that of `public_kernels.py`, with a checkout of the repository. Its README has times of these kernels on that
GPU, none of which the model was fitted to. The record has names, times and predictions; no code enters the project. It
takes two minutes, and needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from pathlib import Path

import gemmlab
from public_kernels import HERE, LIST

RECORD = HERE.parent / "benchmarks" / "results" / "outside-ladder.json"
REPOSITORY, GPU, SIZE = "siboehm/SGEMM_CUDA", "RTX A6000", "4096x4096x4096 beta=1"
MEASURED = {
    "1: naive": 309.0, "2: coalesced": 1986.5, "3: shared memory": 2980.3, "4: 1D tiles": 8474.7,
    "5: 2D tiles": 15971.7, "6: vector loads": 18237.3, "7: linear banks": 16213.4, "8: offset banks": 16459.2,
    "9: tuned": 19721.0, "10: warp tiles": 21779.3, "11: double buffers": 17278.3,
}  # fmt: skip
"""GFLOP/s of the kernels at 4096x4096x4096 by the README of the repository, by number and name."""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the checkouts")
    folder = parser.parse_args().folder / REPOSITORY.replace("/", "+")
    repositories = tomllib.loads(LIST.read_text(encoding="utf-8"))["repository"]
    known = next(each for each in repositories if each["name"] == REPOSITORY)
    files = {Path(kernel["file"]).name.partition("_")[0]: kernel for kernel in known["kernel"]}
    rows = []
    for name, measured in MEASURED.items():
        kernel = files[name.partition(":")[0]]
        found = gemmlab.explain(folder / kernel["file"], gpu=GPU, facts={**known["facts"], **kernel["facts"]})
        predicted = found.to_json()["kernels"][0]["predicted"]
        if (predicted["gpu"], predicted["size"]) != (GPU, SIZE):
            raise SystemExit(f"{name}: predicted for {predicted['size']} on {predicted['gpu']}")
        rows.append({"kernel": name, "measured_gflops": measured, "predicted_gflops": round(predicted["speed"], 1)})
        sys.stderr.write(f"{rows[-1]}\n")
    record = {"repository": REPOSITORY, "commit": known["commit"], "gpu": GPU, "size": SIZE, "rows": rows}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
