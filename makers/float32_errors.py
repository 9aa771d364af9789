"""Record the errors of products of float32 matrices on a GPU, by kind of data and way to compute; of TF32 as well.

    python makers/float32_errors.py benchmarks/results/h200/float32-errors.json

Errors are |C - reference| / (|A| |B|) against float64, in units of 2^-24: the largest and the root of the mean square.
`naive` is one chain of float32 multiply-adds, `torch` cuBLAS without TF32, `torch:tf32` with it. Needs torch; the exit
code is 3 without a GPU.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import GemmlabError
from gemmlab.core.files import replace_file
from gemmlab.devices.select import open_device

SCHEMA = "gemmlab.float32-errors/1"
METHODS = ("f16x3", "bf16x6", "bf16x9", "float32")
M, N, K = 768, 640, 4096
SHORT = (1, 2, 3, 5, 8, 16, 32, 64, 65, 128, 129, 512, 1000, 1280, 1281, 2048, 65536)
UNIT, LEAST = 2.0**24, 2.0**-140
"""The number of units of error in 1, and the least magnitude for each term by which an error is divided: below it
float32 has few bits.
"""
Maker = Callable[[int, int], Any]


class Data:
    """Makers of random matrices (rows, cols) on the GPU, one for each kind of data."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._generator = torch.Generator(device="cuda").manual_seed(7)

    def normal(self, rows: int, cols: int) -> Any:
        return self._torch.randn(rows, cols, device="cuda", generator=self._generator)

    def uniform(self, rows: int, cols: int) -> Any:
        return self._torch.rand(rows, cols, device="cuda", generator=self._generator)

    def spread(self, width: float) -> Maker:
        """Return a maker of uniform numbers times exp(width x), x normal."""
        return lambda rows, cols: self.uniform(rows, cols) * self._torch.exp(width * self.normal(rows, cols))

    def scaled(self, exponent: int) -> Maker:
        return lambda rows, cols: self.normal(rows, cols) * 2.0**exponent

    def huge_row(self, rows: int, cols: int) -> Any:
        found = self.normal(rows, cols)
        found[rows // 2] *= 2.0**60
        return found

    def sparse(self, rows: int, cols: int) -> Any:
        return self.normal(rows, cols) * (self.uniform(rows, cols) < 0.01)

    def one_hot(self, rows: int, cols: int) -> Any:
        found = self._torch.zeros(rows, cols, device="cuda")
        at = self._torch.randint(cols, (rows,), device="cuda", generator=self._generator)
        found[self._torch.arange(rows, device="cuda"), at] = 1.0
        return found

    def identity(self, rows: int, cols: int) -> Any:
        return self._torch.eye(rows, cols, device="cuda")

    def integers(self, rows: int, cols: int) -> Any:
        most = 2**24
        return self._torch.randint(-most, most, (rows, cols), device="cuda", generator=self._generator).float()

    def opposite(self, rows: int, cols: int) -> Any:
        half = self.normal(rows, cols // 2)
        return self._torch.cat([half, -half], 1)

    def nearly_twice(self, rows: int, cols: int) -> Any:
        half = self.normal(rows // 2, cols)
        return self._torch.cat([half, half * (1 + 2.0**-20 * self.normal(rows // 2, cols))], 0)

    def largest(self, rows: int, cols: int) -> Any:
        return self.normal(rows, cols).clamp(-1, 1) * 2.0**127

    def deceiving(self, *, even: bool) -> Maker:
        """Return a maker of A with small elements at even places along k, or of B with small ones at odd places (`even`
        false): small elements meet large ones.
        """

        def make(rows: int, cols: int) -> Any:
            places = self._torch.arange(cols if even else rows, device="cuda") % 2 == (0 if even else 1)
            small = self._torch.where(places, 2.0**-26, 1.0)
            return self.normal(rows, cols) * (small if even else small[:, None])

        return make

    def kinds(self) -> dict[str, tuple[Maker, Maker]]:
        """Return the makers of A and of B by the name of the data."""
        return {
            "normal": (self.normal, self.normal), "uniform in 0 .. 1": (self.uniform, self.uniform),
            "uniform x exp(2 normal)": (self.spread(2), self.spread(2)),
            "uniform x exp(6 normal)": (self.spread(6), self.spread(6)),
            "one huge row": (self.huge_row, self.normal), "1 % dense": (self.sparse, self.sparse),
            "identity": (self.identity, self.normal), "one-hot": (self.one_hot, self.normal),
            "integers to 2^24": (self.integers, self.integers), "cancellation": (self.opposite, self.nearly_twice),
            "near the largest float32": (self.largest, self.scaled(-20)),
            "2^-120 times 2^100": (self.scaled(-120), self.scaled(100)),
            "subnormal": (self.scaled(-135), self.scaled(20)),
            "small against large": (self.deceiving(even=True), self.deceiving(even=False)),
        }  # fmt: skip


def errors(torch: Any, a: Any, b: Any) -> dict[str, tuple[float, float]]:
    """Return for each way to compute `a @ b` its largest error and the root mean square of its errors, in units of
    2^-24 |A| |B|.
    """
    import gemmlab

    exact, magnitude = a.double() @ b.double(), a.abs().double() @ b.abs().double()
    magnitude = magnitude.clamp_min(LEAST * a.shape[1])
    found = {method: gemmlab.gemm(a, b, precision=method) for method in METHODS}
    # The table may choose multiply-adds for this size, but the kernel on tensor cores is to be judged.
    found["float32"] = gemmlab.gemm(a, b, precision="float32", kernel="by_tile")
    found["naive"], found["torch"] = gemmlab.gemm(a, b, kernel="naive"), torch.mm(a, b)
    if a.shape[1] == K:  # a tensor map does not take every length
        found["tf32"] = gemmlab.gemm(a, b, precision="tf32", kernel="persistent")
        torch.backends.cuda.matmul.allow_tf32 = True
        found["torch:tf32"] = torch.mm(a, b)
        torch.backends.cuda.matmul.allow_tf32 = False
    result = {}
    for name, c in found.items():
        # All ways round subnormal results to multiples of 2^-149.
        error = ((c.double() - exact).abs() - 2.0**-149).clamp_min(0) / magnitude * UNIT
        result[name] = float(error.max()), float(error.square().mean().sqrt())
    return result


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        device = open_device("cuda")
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    data = Data(torch)
    rows = [{"data": name, "k": K, "errors": errors(torch, left(M, K), right(K, N))}
            for name, (left, right) in data.kinds().items()]  # fmt: skip
    random = ("normal", "uniform in 0 .. 1", "uniform x exp(2 normal)", "uniform x exp(6 normal)")
    for name in random:
        left, right = data.kinds()[name]
        rows += [{"data": name, "k": k, "errors": errors(torch, left(M, k), right(k, N))} for k in SHORT]
    record = {"schema": SCHEMA, "environment": describe_environment(), "device": device.describe().name,
              "shape": [M, N], "unit": "2^-24 of |A| |B|, largest and root mean square", "rows": rows}  # fmt: skip
    replace_file(Path(arguments[0]), (json.dumps(record, indent=1) + "\n").encode())
    print(f"{len(rows)} kinds of data")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
