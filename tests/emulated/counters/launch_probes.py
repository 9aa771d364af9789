"""Launch the probes or the three rungs in a fixed order under a profiler.

`PYTHONPATH=tests/emulated python launch_probes.py probes --names names.json`; the names are those of the launches in
order.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from probes import copies, probes

from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import BoundKernel, bind
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from support.cuda_calls import CudaFile

RUNGS = ("naive", "block_tile", "vector_load")
SIZES = "128x128x64,100x77x53"
"""On the tile and off it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("probes", "rungs"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--names", type=Path, required=True)
    options = parser.parse_args()
    launch = {"probes": launch_probes, "rungs": launch_rungs}[options.what]
    options.names.write_text(json.dumps(list(launch(open_device(options.device)))))


def launch_probes(device: Any) -> Iterator[str]:
    """Name of each probe once it has run."""
    files: dict[Path, CudaFile] = {}
    for probe in (*probes(), *copies()):
        file = files.setdefault(probe.file, CudaFile(device, probe.file))
        file.run(probe.kernel, probe.grid, probe.threads, probe.args)
        yield probe.name


def launch_rungs(device: Any) -> Iterator[str]:
    """Name of each rung and problem once it has run."""
    for name, bound in rungs(device):
        bound.run()
        yield name


def rungs(device: Any) -> Iterator[tuple[str, BoundKernel]]:
    """Each rung with a problem, ready to run, by a name like `naive 128x128x64`."""
    op = find_op("gemm")
    for rung in RUNGS:
        kernel = find_kernel(rung)
        for problem in op.parse_sizes(SIZES):
            arrays = {name: array.reshape(-1) for name, array in op.fill(problem, np.random.default_rng(1)).items()}
            yield f"{rung} {problem.label}", bind(kernel, device, op, problem, arrays)


if __name__ == "__main__":
    main()
