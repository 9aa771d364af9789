"""Predict kernels of two repositories on other GPUs than an H200: `python makers/outside_ladder.py FOLDER`.

FOLDER is that of `public_kernels.py`, with a checkout of each. Their READMEs have times of these kernels, siboehm's on
an RTX A6000, salykova's on an RTX 3090 with a locked clock; the model was fitted to none. The record has names, times
and predictions; no code enters the project. It takes half a minute, and needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import gemmlab
from gemmlab.analysis.model.quoted_prediction import modelled, quote
from gemmlab.analysis.subject import machine
from gemmlab.kernels.user_kernel import user_kernel
from public_kernels import HERE, LIST

RECORD = HERE.parent / "benchmarks" / "results" / "outside-ladder.json"
REPOSITORY, GPU, SIZE = "siboehm/SGEMM_CUDA", "RTX A6000", "4096x4096x4096 beta=1"
MEASURED = {
    "1: naive": 309.0, "2: coalesced": 1986.5, "3: shared memory": 2980.3, "4: 1D tiles": 8474.7,
    "5: 2D tiles": 15971.7, "6: vector loads": 18237.3, "7: linear banks": 16213.4, "8: offset banks": 16459.2,
    "9: tuned": 19721.0, "10: warp tiles": 21779.3, "11: double buffers": 17278.3,
}  # fmt: skip
"""GFLOP/s of the kernels at 4096x4096x4096 by the README of the repository, by number and name."""
LOCKED, LOCKED_GPU, LOCKED_MHZ, LOCKED_SIZE = "salykova/sgemm.cu", "RTX 3090", 1395, "8192"
LOCKED_GFLOPS = 23400.0
"""About what the picture in the README shows for the repository's kernel at `LOCKED_SIZE` cubed."""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the checkouts")
    folder = parser.parse_args().folder
    record = {**ladder(folder), "locked": locked(folder)}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def facts_of(repository: str) -> dict[str, Any]:
    """Return what the list of public kernels states about a repository."""
    repositories: list[dict[str, Any]] = tomllib.loads(LIST.read_text(encoding="utf-8"))["repository"]
    return next(each for each in repositories if each["name"] == repository)


def ladder(folder: Path) -> dict[str, Any]:
    """Return the predictions for siboehm's ladder."""
    folder, known = folder / REPOSITORY.replace("/", "+"), facts_of(REPOSITORY)
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
    return {"repository": REPOSITORY, "commit": known["commit"], "gpu": GPU, "size": SIZE, "rows": rows}


def locked(folder: Path) -> dict[str, Any]:
    """Return the predictions for salykova's kernels at the clock that its README states."""
    folder, known = folder / LOCKED.replace("/", "+"), facts_of(LOCKED)
    arch, gpu = machine("", LOCKED_GPU)
    rows = []
    for stated in known["kernel"]:
        kernel = user_kernel(folder / stated["file"], **{**known["facts"], **stated["facts"]})
        model = modelled(kernel, arch, replace(gpu, boost_mhz=LOCKED_MHZ), {})
        speed = round(quote(model, kernel, {}, LOCKED_SIZE).speed, 1)
        rows.append({"kernel": Path(stated["file"]).stem, "predicted_gflops": speed})
        sys.stderr.write(f"{rows[-1]}\n")
    return {
        "repository": LOCKED, "commit": known["commit"], "gpu": LOCKED_GPU, "mhz": LOCKED_MHZ, "size": LOCKED_SIZE,
        "measured_gflops": LOCKED_GFLOPS, "rows": rows,
    }  # fmt: skip


if __name__ == "__main__":
    main()
