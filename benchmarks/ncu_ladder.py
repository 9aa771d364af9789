"""Nsight Compute's figures of every rung and of cuBLAS, beside the emulator's.

`python benchmarks/ncu_ladder.py profile FILE` on a machine with a GPU and ncu writes them.
`python benchmarks/ncu_ladder.py emulate FILE` on any machine with the same cache of compiled code adds what the
emulator counts for the same launches, and names every exact count that differs; it ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from gemmlab.core.errors import GemmlabError, PeerError
from gemmlab.core.hardware import usable_cpus
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.measure.counting import Count, count_kernels
from gemmlab.measure.ncu import disagreements, find_ncu, profile, version
from gemmlab.measure.peers import Spec, kernel_spec, parse_contestant
from gemmlab.ops.catalog import find_op

SCHEMA = "gemmlab.ncu/1"
LIBRARIES = ("cublas", "torch")
"""The first that is installed is profiled."""
Launch = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    at_gpu, anywhere = verbs.add_parser("profile"), verbs.add_parser("emulate")
    for verb in (at_gpu, anywhere):
        verb.add_argument("file", type=Path)
    at_gpu.add_argument("--kernels", default="", help="ids with commas between them; default: the ladder")
    at_gpu.add_argument("--op", default="gemm")
    # The larger is what people quote; the smaller one can be emulated in seconds.
    at_gpu.add_argument("--sizes", default="512,2048")
    at_gpu.add_argument("--device", default="cuda:0")
    at_gpu.add_argument("--ncu", default="ncu")
    anywhere.add_argument("--sizes", default="512")
    anywhere.add_argument("--processes", type=int, default=len(usable_cpus()))
    options = parser.parse_args()
    try:
        if options.verb == "profile":
            return at_a_gpu(options.file, options.op, options.kernels, options.sizes, options.device, options.ncu)
        return emulate(options.file, options.sizes, options.processes)
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def at_a_gpu(file: Path, op: str, kernels: str, sizes: str, device: str, ncu: str) -> int:
    """Profile and write the record."""
    path, gpu = find_ncu(ncu), open_device(device, "warm")
    names = kernels.split(",") if kernels else [kernel.id for kernel in ladder(op, "cuda")]
    specs = [kernel_spec(name, device, "warm") for name in names]
    specs += [spec for spec in [installed_library(device)] if spec]
    found = profile(specs, op, sizes, path)
    record = {
        "schema": SCHEMA, "op": op, "device": gpu.describe().name, "arch": gpu.target({}), "profiler": version(path),
        "time_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "launches": [asdict(item) for item in found],
    }  # fmt: skip
    save(file, record)
    print(f"{len(found)} launches of {len(specs)} contestants: {file}")
    return 0


def installed_library(device: str) -> Spec | None:
    for name in LIBRARIES:
        try:
            return parse_contestant(name, device, "warm")
        except PeerError as error:
            print(error, file=sys.stderr)
    return None


def emulate(file: Path, sizes: str, processes: int) -> int:
    """Add the emulator's counts to a record."""
    record = json.loads(file.read_text())
    wanted = {problem.label for problem in find_op(record["op"]).parse_sizes(sizes)}
    mine = [one for one in record["launches"] if one["contestant"].startswith("kernel:") and one["size"] in wanted]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        counted = pool.map(emulated, mine, [record["op"]] * len(mine), [record["arch"]] * len(mine))
        for launch, counts in zip(mine, counted, strict=True):
            launch["emulated"] = counts
            launch["disagreements"] = compare(launch)
            print(f"{launch['contestant']} {launch['size']}: {'; '.join(launch['disagreements']) or 'equal'}")
    save(file, record)
    return int(any(launch["disagreements"] for launch in mine))


def emulated(launch: Launch, op: str, arch: str) -> dict[str, Any]:
    """Digest and totals of the same launch on the emulator, or why there are none."""
    operation, kernel = find_op(op), find_kernel(launch["contestant"].removeprefix("kernel:"))
    count = Count(
        operation, open_device(f"emulated:{arch}"), [kernel], operation.parse_sizes(launch["size"]), seed=1,
        config=launch["facts"]["config"],
    )  # fmt: skip
    (result,) = count_kernels(count).results
    if "counters" not in result.facts:
        return {"code_sha256": "", "why": "; ".join(result.notes), "totals": {}}
    totals = {name: metric["value"] for name, metric in result.facts["counters"].items()}
    instructions = {
        "inst_executed": totals["smsp__inst_executed.sum"],
        "thread_inst_executed": totals["smsp__thread_inst_executed.sum"],
        "thread_inst_executed_true": totals["smsp__thread_inst_executed_pred_on.sum"],
    }
    return {"code_sha256": result.facts["code_sha256"], "why": "", "totals": {**totals, **instructions}}


def compare(launch: Mapping[str, Any]) -> list[str]:
    """Exact counts that differ; code that differs is no disagreement of counts, and said."""
    counts = launch["emulated"]
    if counts["why"]:
        return [counts["why"]]
    if counts["code_sha256"] != launch["facts"]["code_sha256"]:
        return [f"other code: {counts['code_sha256'][:12]} here, {launch['facts']['code_sha256'][:12]} profiled"]
    return disagreements(launch["counts"], launch["metrics"], counts["totals"])


def save(file: Path, record: Mapping[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
