"""Write the main loop of peak_simt anew in several ways, and time them in turns on a GPU beside async_copy and
torch.mm.

    python makers/peak_loops.py prepare --out loops.npz                                  (no GPU)
    python makers/peak_loops.py run loops.npz [--sizes 2048,4096,8192] [--rounds 8] [--seconds 60] --out peak-loops.json

`prepare` compiles, and writes the code of all variants. `run` first compares each contestant with float64; one that is
wrong or fails is named and left out. Then the contestants take turns; a round times each once with cold caches. `run`
begins no round after its seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.core.errors import GemmlabError
from gemmlab.core.program import Artifact
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.device import Buffer
from gemmlab.kernels.bound import BoundKernel
from gemmlab.kernels.by_name import kernel_named
from gemmlab.sass.rewriting.written_loop import rewritten
from gemmlab.toolchain.cache import decode
from gemmlab.verify.changed_code import Build, build_of
from peak_loop.variants import VARIANTS
from sass_on_gpu import packed
from sass_variants import Timed, timed

ARCH, BASE, RUNG, SMALL = "sm_90", "async_copy", "peak_simt", "256x512x72"
INNER = 3
UNITS = 8
"""The largest right error, in units of 2^-24 times the largest element of |A| |B|."""


def build(rung: str, size: str, artifact: Artifact | None = None) -> Build:
    return build_of(kernel_named(rung), ARCH, size, {}, artifact)


def prepare(out: Path) -> None:
    """Write the code of `BASE` and `RUNG` as compiled, and that of `RUNG` with each variant of the loop."""
    made = build(RUNG, SMALL)
    codes: dict[str, Any] = {BASE: packed(build(BASE, SMALL).artifact), RUNG: packed(made.artifact)}
    for name, variant in VARIANTS.items():
        code = rewritten(made.artifact.code, made.function, variant, f"{RUNG}_{name}")
        codes[f"{RUNG}_{name}"] = np.frombuffer(code, np.uint8)
    with out.open("wb") as file:
        np.savez_compressed(file, **codes)
    print(f"{len(codes)} contestants, {out.stat().st_size:,} bytes")


class Product:
    """One square product: the operands on the device, and the float64 result."""

    def __init__(self, device: CudaDevice, made: Build, size: int) -> None:
        import torch

        self.torch, self.device, self.size = torch, device, size
        self.operands: dict[str, Buffer] = made.operands(device)
        host = [np.empty(self.size**2, np.float32) for _ in "ab"]
        for name, values in zip("ab", host, strict=True):
            device.download(self.operands[name], values)
        self.a, self.b = (torch.from_numpy(values.reshape(self.size, -1)).cuda() for values in host)
        torch.backends.cuda.matmul.allow_tf32 = False
        self.out = torch.mm(self.a, self.b)
        self.reference = torch.mm(self.a.double(), self.b.double())
        self.scale = torch.mm(self.a.double().abs(), self.b.double().abs()).max().item()
        torch.cuda.synchronize()

    def right(self, label: str, made: Build, bound: BoundKernel) -> bool:
        """Run twice, as tickets must be zero again after a run; print the second result's error, and return whether it
        is at most `UNITS`.
        """
        bound.run()
        bound.run()
        result = self.torch.from_numpy(made.result(bound).view(np.float32).reshape(self.size, -1)).cuda().double()
        error = (result - self.reference).abs().max().item() / self.scale * 2**24
        print(f"{self.size:6} {label:18} {error:.2f} units of |A| |B|", flush=True)
        # False if the error is NaN.
        return bool(error <= UNITS)

    def time(self, repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times of torch.mm in microseconds, enqueued on the device's stream."""
        torch = self.torch
        stream = torch.cuda.ExternalStream(int(self.device.stream), device=self.device.ordinal)
        with torch.cuda.stream(stream):
            return self.device.time_enqueued(lambda: torch.mm(self.a, self.b, out=self.out), repeats, inner, "torch.mm")


def run(prepared: Path, sizes: Sequence[str], rounds: int, seconds: float, out: Path) -> None:
    """Check and time every contestant of the file `prepared`, and write the record; each size gets an equal part of the
    seconds.
    """
    device, rows, start = CudaDevice(), list[dict[str, Any]](), time.monotonic()
    compiler = ""
    with np.load(prepared) as file:
        codes = {label: file[label].tobytes() for label in file.files}
    compiled = {rung: decode(codes[rung]) for rung in (BASE, RUNG)}
    for number, size in enumerate(sizes):
        product: Product | None = None
        found: dict[str, BoundKernel] = {}
        for label, code in codes.items():
            rung = label if label in compiled else RUNG
            made = build(rung, size, compiled[rung])
            compiler = made.artifact.compiler
            product = product or Product(device, made, int(size))
            try:
                bound = made.bind(made.artifact.code if label in compiled else code, device, product.operands)
                if product.right(label, made, bound):
                    found[label] = bound
            except GemmlabError as error:
                print(f"{size:>6} {label}: {error}", flush=True)
        turns: dict[str, Timed] = {**found, **({} if product is None else {"torch.mm": product})}
        times = timed(turns, rounds, start + seconds * (number + 1) / len(sizes), INNER)
        for label, some in sorted(times.items(), key=lambda item: statistics.median(item[1])):
            median = statistics.median(some)
            print(f"{size:>6} {label:18} {median:10.1f} us  {2e-6 * int(size) ** 3 / median:6.2f} TFLOP/s", flush=True)
            rows.append({"size": size, "label": label, "us": some})
        facts = {
            "device": device.describe().name,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "compiler": compiler,
        }
        record = {
            **facts,
            "arch": ARCH,
            "op": "gemm",
            "precision": "float32",
            "layout": "nn",
            "inner": INNER,
            "rows": rows,
        }
        out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare")
    preparing.add_argument("--out", type=Path, required=True)
    running = commands.add_parser("run")
    running.add_argument("prepared", type=Path)
    running.add_argument("--sizes", default="2048,4096,8192")
    running.add_argument("--rounds", type=int, default=8)
    running.add_argument("--seconds", type=float, default=60)
    running.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.command == "prepare":
        prepare(given.out)
    else:
        run(given.prepared, given.sizes.split(","), given.rounds, given.seconds, given.out)
