"""Run DeepGEMM's BF16 products for Hopper on the emulator, compiled from its checkout, and print a row for each.

    python makers/deepgemm_bf16.py DEEPGEMM CUTLASS [--nvcc nvcc]

It is the counterpart of `deepgemm_fp8.py`, whose compiler, sizes and verdicts it uses. Operands are small multiples of
1/2, so every product is exact, and each element must equal the sum rounded once. The exit code is 1 if a product is
wrong.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deepgemm_fp8 import SHARED, operand, outputs, rows_of, to_bfloat16
from gemmlab import TensorMap, launch

DEPTH = 64
"""The number of elements along k of a tile: a row has 128 bytes, as its swizzle."""
MOST_BLOCKS = 4
KERNEL = "sm90_bf16_gemm"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Template arguments that DeepGEMM's host code would choose, for a machine of `MOST_BLOCKS` multiprocessors."""

    rows: int
    columns: int
    stages: int
    result: str = "bfloat16"
    accumulate: bool = False
    cluster: int = 1
    on_a: bool = False

    @property
    def kernel(self) -> str:
        return KERNEL

    @property
    def math_threads(self) -> int:
        return 128 if self.rows <= 64 else 256

    @property
    def swizzle(self) -> int:
        """The swizzle of the result's tiles in bytes; 0 for a float32 result."""
        if self.result == "float32":
            return 0
        return next(mode for mode in (128, 64, 32, 16) if 2 * self.columns % mode == 0)

    def source(self) -> str:
        """Return the text of a file that instantiates the kernel."""
        major = "cute::UMMA::Major::K"
        tile = f"{self.rows}, {self.columns}, {DEPTH}, 128, 128, {self.swizzle}"
        run = f"{self.stages}, 128, {self.math_threads}, {self.cluster}, {str(self.on_a).lower()}, {MOST_BLOCKS}"
        kind = "float" if self.result == "float32" else "cutlass::bfloat16_t"
        arguments = f"{major}, {major}, 0, 0, 0, 1, {tile}, {run}, GemmType::Normal, {str(self.accumulate).lower()}"
        return (
            f"#include <deep_gemm/impls/{KERNEL}.cuh>\nusing namespace deep_gemm;\n"
            f"void* instance() {{ return reinterpret_cast<void*>(&{KERNEL}_impl<{arguments}, {kind}>); }}\n"
        )

    def __str__(self) -> str:
        words = [f"{self.rows} x {self.columns}", f"{self.stages} stages", f"{self.result} result"]
        words += ["added to C"] * self.accumulate
        words += [f"multicast of {'A' if self.on_a else 'B'} in clusters of {self.cluster}"] * (self.cluster > 1)
        return ", ".join(words)


CONFIGURATIONS = (
    Configuration(128, 128, 5),
    Configuration(64, 64, 12),  # from ten stages on, two are one
    Configuration(128, 96, 5, "float32"),
    Configuration(128, 128, 4, "float32", accumulate=True),
    Configuration(128, 128, 5, cluster=2),
    Configuration(128, 128, 5, cluster=2, on_a=True),
)


def run(configuration: Configuration, cubin: Any, size: tuple[int, int, int]) -> tuple[bool, list[str]]:
    """Launch a product of `size` (m, n, k); return whether it is right, and the hazards by kind and message."""
    random = np.random.default_rng(sum(size))
    m, n, k = size
    a, b = (operand(random, rows, k) for rows in (m, n))
    expected = a @ b.T
    extents = configuration.rows, configuration.columns
    maps = [
        TensorMap(to_bfloat16(each), (rows, DEPTH), swizzle=128, dtype="bfloat16")
        for each, rows in zip((a, b), extents, strict=True)
    ]
    narrow = configuration.result == "bfloat16"
    out: npt.NDArray[Any] = np.full((m, n), 0x7FC0, np.uint16) if narrow else np.full((m, n), np.nan, np.float32)
    if configuration.accumulate:
        out = random.integers(-8, 8, (m, n)).astype(np.float32)
        expected = expected + out
    mode = configuration.swizzle
    box = configuration.rows, mode // 2 if mode else configuration.columns
    result = TensorMap(out, box, swizzle=mode if mode > 16 else 0, dtype=configuration.result)
    done = launch(
        cubin, KERNEL + "_impl", MOST_BLOCKS, 128 + configuration.math_threads,
        [None, *(np.uint32(extent) for extent in size), *maps, result], smem_bytes=SHARED, device="emulated:sm_90a",
        timeout_s=120, cluster=configuration.cluster if configuration.cluster > 1 else None,
    )  # fmt: skip
    found = next(each for each in outputs(done) if each.shape == (m, n) and each.dtype == out.dtype)
    right = bool((found == (to_bfloat16(expected) if narrow else expected)).all())
    return right, [f"{hazard.kind}: {hazard.message}" for hazard in done.hazards or ()]


if __name__ == "__main__":
    sys.exit(rows_of(CONFIGURATIONS, run, __doc__))
