"""Time rungs with other options of the compiler and with fewer blocks an SM, for two claims of the sources.

    python makers/compiler_options.py [--device cuda] [--size 4096] [--out FILE.json]

`maxas_256` is compiled with caps on its registers, and launched with so much shared memory that only one block fits on
an SM. `warp_tile_double_buffer` is compiled with and without --use_fast_math. All variants take turns. It takes half a
minute on a GPU. On the emulator (`--device emulated:sm_90 --size 128`) the code is compiled, run and compared, but not
timed.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from blocks.records import RESULTS
from claims.small_runs import COMPILER_OPTIONS, FAST_MATH_OFF, FAST_MATH_ON, ONE_BLOCK, TWO_BLOCKS
from gemmlab.core.errors import GemmlabError
from gemmlab.devices.device import Device
from gemmlab.devices.device_name import parse_device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import BoundKernel, place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.sass.parse import parse

ROUNDS, REPEATS = 7, 5
CAPS = (96, 128, 168, 255)
HALF_AN_SM = 120_000
"""Bytes of shared memory that only one block has room for on an SM of sm_90."""


_BOUNDS = re.compile(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)")


@dataclass(frozen=True, slots=True)
class Variant:
    """A rung compiled or launched in another way."""

    name: str
    rung: str
    options: tuple[str, ...] = ()
    smem_bytes: int = 0
    cap: int = 0
    """The most registers of a thread that the compiler may use; 0 for no such limit beside the rung's launch bounds."""


def variants() -> list[Variant]:
    """Return the variants that are timed in turns."""
    capped = [Variant(f"maxas_256, {cap} registers", "maxas_256", (f"--maxrregcount={cap}",), cap=cap) for cap in CAPS]
    return [
        Variant(TWO_BLOCKS, "maxas_256"), Variant(ONE_BLOCK, "maxas_256", smem_bytes=HALF_AN_SM), *capped,
        Variant(FAST_MATH_OFF, FAST_MATH_OFF), Variant(FAST_MATH_ON, FAST_MATH_OFF, ("--use_fast_math",)),
    ]  # fmt: skip


def bound(
    variant: Variant, device: Device, problem: GemmProblem, buffers: dict[str, Any], folder: Path
) -> BoundKernel:  # fmt: skip
    """Return a variant ready to run. It is built from a copy of the rung's file in `folder`, as a user's kernel, which
    may have compiler options.

    The copy of a variant with a cap has no launch bounds, because the compiler ignores a cap beside these.
    """
    path = find_kernel(variant.rung).path
    headers = f"-I{path.parent.parent / 'cuda_common'}"
    text = path.read_text(encoding="utf-8")
    own = folder / path.name
    own.write_text(_BOUNDS.sub("", text) if variant.cap else text, encoding="utf-8")
    kernel = user_kernel(own, options=[headers, *variant.options], smem_bytes=str(variant.smem_bytes))
    return place(kernel, device).bind(GemmOp(), problem, buffers)


def measured(device: Device, size: int, *, timed: bool) -> dict[str, Any]:
    """Return a row for each variant: registers, instructions of the code, whether the first rows of its result are
    right, and its median time in microseconds, 0 if not `timed`.
    """
    problem, rng = GemmProblem(size, size, size), np.random.default_rng(0)
    a, b = (rng.random((size, size), np.float32) - np.float32(0.5) for _ in "ab")
    buffers = {"a": device.upload(a), "b": device.upload(b), "c": device.allocate(a.nbytes)}
    with tempfile.TemporaryDirectory() as folder:
        ready = {one: bound(one, device, problem, buffers, Path(folder)) for one in variants()}
    rows: dict[str, dict[str, Any]] = {}
    for one, kernel in ready.items():
        artifact, out = kernel.loaded.artifact, np.empty((size, size), np.float32)
        kernel.run()
        kernel.download("c", out)
        limit = np.abs(a[:8]).astype(np.float64) @ np.abs(b) * (size + 4) * 2.0**-24
        rows[one.name] = {
            "registers": artifact.resources["registers"],
            "instructions": len(parse(artifact.texts["sass"])[artifact.entry].instructions),
            "right": bool(np.all(np.abs(out[:8] - a[:8].astype(np.float64) @ b) <= limit)),
            **({"cap": one.cap} if one.cap else {}),
        }
    samples: dict[str, list[float]] = {one.name: [] for one in ready}
    for _ in range(ROUNDS if timed else 0):
        for one, kernel in ready.items():
            samples[one.name].append(statistics.median(kernel.time(REPEATS)))
    for name, times in samples.items():
        rows[name]["time_us"] = statistics.median(times) if times else 0.0
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--out", type=Path, default=RESULTS / COMPILER_OPTIONS[0])
    chosen = parser.parse_args(arguments)
    timed = parse_device(chosen.device).family == "cuda"
    try:
        device = open_device(chosen.device, "cold" if timed else None)
        rows = measured(device, chosen.size, timed=timed)
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for name, row in rows.items():
        print(name, row)
    if wrong := [name for name, row in rows.items() if not row["right"]]:
        print(f"wrong: {', '.join(wrong)}", file=sys.stderr)
        return 1
    if timed:
        record = {"schema": COMPILER_OPTIONS[1], "device": device.describe().name, "size": chosen.size, "rows": rows}
        chosen.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
