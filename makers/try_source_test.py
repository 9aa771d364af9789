"""Try the sources' own test on TF32 and on less accurate products, into benchmarks/results/emulated/source-test.json.

The products are modelled: inputs are rounded or cut off, and multiplied in float64. At the smallest size the WMMA rung
itself is run on the emulator, too. The reference is the float64 product of the unchanged inputs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt

from blocks.records import RESULTS
from blocks.source_test import RECORD, SCHEMA, Tested
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.elementwise import SOURCE_LIMIT

SIZES = (256, 512, 1024, 2048)
"""The source's sizes."""
DATA = {"0 to 1": (0.0, 1.0), "-1 to 1": (-1.0, 1.0)}
RUNG, RUN_AT, ON = "wmma_tf32", 256, "emulated:sm_90"
Words = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


def kept(bits: int, unit: int = 0) -> Callable[[Words], Words]:
    """Return a function that cuts float32 numbers off to `bits` bits behind the point, after `unit` was added to their
    bit patterns; half of the last bit that stays, as `unit`, rounds to nearest.
    """
    mask = np.uint32(0xFFFFFFFF << 23 - bits & 0xFFFFFFFF)
    return lambda values: ((values.view(np.uint32) + np.uint32(unit)) & mask).view(np.float32)


ROUNDED = kept(10, 0x1000)
"""Round finite numbers to TF32 like the instruction cvt.rna.tf32.f32."""


def product(convert: Callable[[Words], Words]) -> Callable[[Words, Words], Doubles]:
    return lambda a, b: convert(a).astype(np.float64) @ convert(b).astype(np.float64)


WAYS: Mapping[str, Callable[[Words, Words], Doubles]] = {
    "float32": lambda a, b: (a @ b).astype(np.float64),
    "TF32, rounded": product(ROUNDED),
    "TF32, cut off": product(kept(10)),
    "BF16, rounded (8 bits)": product(kept(7, 0x8000)),
    "TF32, rounded, last step of k left out": lambda a, b: product(ROUNDED)(a[:, :-1], b[:-1]),
}


def main(path: Path) -> int:
    rows = []
    for data, (low, high) in DATA.items():
        for n in SIZES:
            rng = np.random.default_rng(0)
            a, b = (rng.uniform(low, high, (n, n)).astype(np.float32) for _ in "ab")
            exact = a.astype(np.float64) @ b.astype(np.float64)
            rows += [judged(n, data, way, compute(a, b), exact) for way, compute in WAYS.items()]
            if n == RUN_AT:
                rows.append(judged(n, data, f"`{RUNG}` on {ON}", run(a, b), exact))
    record = {"schema": SCHEMA, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


def judged(n: int, data: str, way: str, found: Doubles, exact: Doubles) -> Tested:
    """Return the outcome of the sources' test, in which errors are relative to the computed values, not
    to exact ones.
    """
    relative = np.abs(found - exact) / np.abs(found) / n
    return Tested(n, data, way, float(relative.max()), float((relative >= SOURCE_LIMIT).mean()))


def run(a: Words, b: Words) -> Doubles:
    """Return the product of a and b by the machine code of `RUNG` on the emulator."""
    op, device, n = GemmOp(), open_device(ON), len(a)
    c = np.full((n, n), np.nan, np.float32)
    buffers = {name: device.upload(array.ravel()) for name, array in (("a", a), ("b", b), ("c", c))}
    place(find_kernel(RUNG), device, {}).bind(op, GemmProblem(n, n, n), buffers).run()
    device.download(buffers["c"], c)
    for buffer in buffers.values():
        device.free(buffer)
    return c.astype(np.float64)


if __name__ == "__main__":
    sys.exit(main(RESULTS / RECORD))
