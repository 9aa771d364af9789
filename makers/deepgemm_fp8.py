"""Run DeepGEMM's FP8 products for Hopper on the emulator, compiled from its checkout, and print a row for each.

    python makers/deepgemm_fp8.py DEEPGEMM CUTLASS [--nvcc nvcc]

DEEPGEMM and CUTLASS are checkouts (deepseek-ai/DeepGEMM, NVIDIA/cutlass). nvcc compiles the kernels for sm_90a without
a GPU, with template arguments that DeepGEMM's own host code would choose; tensor maps and launches are like those of
its host code. Operands are small multiples of 1/2 and scales powers of two, so every product is exact, and each element
must equal the sum rounded once. No code of either checkout is part of this project. The exit code is 1 if a product is
wrong.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from gemmlab import TensorMap, launch
from gemmlab.launching import Launched

SHARED = 232448
"""Bytes of dynamic shared memory of a block: all that a block can have."""
SCALED = 128
"""The number of elements along k that share a scale, and of rows of B if a square of elements shares one."""
FLAGS = ("-std=c++20", "--expt-relaxed-constexpr", "--expt-extended-lambda", "-O3", "-lineinfo", "-w",
         "-gencode=arch=compute_90a,code=sm_90a")  # fmt: skip
Floats = npt.NDArray[np.float32]
K = TypeVar("K", bound="Kernel")
E4M3 = {0.0: 0, 0.5: 0x30, 1.0: 0x38, 2.0: 0x40, 3.0: 0x44, 4.0: 0x48}
"""Magnitude of an operand's element -> its byte as E4M3."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Template arguments that DeepGEMM's host code would choose, for a machine of `blocks` multiprocessors."""

    square: bool
    """True if 128 x 128 elements of B share a scale (kernel `1d2d`, with a BF16 result); False if 128 elements of a row
    do (kernel `1d1d`, which adds to C in float32).
    """
    rows: int
    columns: int
    stages: int
    cluster: int = 1
    on_a: bool = False
    blocks: int = 4

    @property
    def kernel(self) -> str:
        return f"sm90_fp8_gemm_{'1d2d' if self.square else '1d1d'}"

    @property
    def math_threads(self) -> int:
        return 128 if self.rows <= 64 else 256

    @property
    def swizzle(self) -> int:
        """The swizzle of the result's tiles in bytes; 0 for a float32 result."""
        return next(mode for mode in (128, 64, 32, 16) if 2 * self.columns % mode == 0) if self.square else 0

    def source(self) -> str:
        """Return the text of a file that instantiates the kernel."""
        tile = f"{self.rows}, {self.columns}, {SCALED}, 128, 128"
        launch = f"{self.stages}, 128, {self.math_threads}, {self.cluster}, {str(self.on_a).lower()}, {self.blocks}"
        arguments = (
            f"cute::UMMA::Major::K, 0, 0, 0, 1, {tile}, {self.swizzle}, {launch}, GemmType::Normal, "
            "cutlass::bfloat16_t, epilogue::transform::EpilogueIdentity"
            if self.square
            else f"0, 0, 0, 1, {tile}, {launch}, GemmType::Normal, float"
        )
        return (
            f"#include <deep_gemm/impls/{self.kernel}.cuh>\nusing namespace deep_gemm;\n"
            f"void* instance() {{ return reinterpret_cast<void*>(&{self.kernel}_impl<{arguments}>); }}\n"
        )

    def __str__(self) -> str:
        multicast = f", multicast of {'A' if self.on_a else 'B'} in clusters of {self.cluster}"
        return f"{self.rows} x {self.columns}, {self.stages} stages{multicast if self.cluster > 1 else ''}"


CONFIGURATIONS = (
    Configuration(True, 128, 128, 4),
    Configuration(True, 64, 128, 6),
    Configuration(True, 128, 160, 4),
    Configuration(True, 64, 96, 5),
    Configuration(True, 128, 128, 4, cluster=2),
    Configuration(True, 128, 128, 4, cluster=2, on_a=True),
    Configuration(False, 128, 128, 3),
    Configuration(False, 64, 64, 4),
    Configuration(False, 128, 128, 3, cluster=2),
)
SIZES = ((256, 320, 512), (200, 264, 640), (64, 640, 1024))


class Kernel(Protocol):
    """A configuration of a kernel of DeepGEMM."""

    @property
    def kernel(self) -> str: ...

    def source(self) -> str: ...


def rows_of(
    configurations: Iterable[K], run: Callable[[K, Path, tuple[int, int, int]], tuple[bool, list[str]]],
    said: str | None,
) -> int:  # fmt: skip
    """Read the command line, run every configuration at every size and print a row for each; return the exit code.

    `said` is the program's description.
    """
    parser = argparse.ArgumentParser(description=said, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deepgemm", type=Path)
    parser.add_argument("cutlass", type=Path)
    parser.add_argument("--nvcc", default="nvcc")
    options = parser.parse_args()
    wrong = 0
    for configuration in configurations:
        verdict, hazards = "right", list[str]()
        with tempfile.TemporaryDirectory() as folder:
            cubin = compiled(configuration, Path(folder), options)
            for size in SIZES:
                right, found = run(configuration, cubin, size)
                if not right:
                    verdict = f"wrong at {'x'.join(map(str, size))}"
                    wrong += 1
                hazards += found
        reported = "; ".join(dict.fromkeys(hazards)) or "nothing"
        print(f"| `{configuration.kernel}` | {configuration} | {verdict} | {reported} |", flush=True)
    return int(bool(wrong))


def compiled(configuration: Kernel, folder: Path, options: argparse.Namespace) -> Path:
    source, cubin = folder / "instance.cu", folder / "instance.cubin"
    source.write_text(configuration.source())
    includes = (f"-I{options.deepgemm / 'deep_gemm/include'}", f"-I{options.cutlass / 'include'}")
    subprocess.run([options.nvcc, "-cubin", *FLAGS, *includes, str(source), "-o", str(cubin)], check=True)
    return cubin


def run(configuration: Configuration, cubin: Path, size: tuple[int, int, int]) -> tuple[bool, list[str]]:
    """Launch a product of `size` (m, n, k); return whether every element is right, and the hazards'
    kinds and messages.
    """
    random = np.random.default_rng(sum(size))
    m, n, k = size
    a, b = (operand(random, rows, k) for rows in (m, n))
    steps = k // SCALED
    # Scales of A lie by columns, and rows of a tensor map are multiples of 16 bytes.
    scales_a, scales_b = (
        2.0 ** random.integers(-1, 2, (steps, -(-rows // 4) * 4)).astype(np.float32) for rows in (m, n)
    )
    squares = 2.0 ** random.integers(-1, 2, (-(-n // SCALED), steps)).astype(np.float32)
    of_b = np.repeat(squares, SCALED, 0)[:n] if configuration.square else scales_b[:, :n].T
    expected = np.einsum(
        "msk,nsk,ms,ns->mn", *(each.reshape(len(each), steps, SCALED) for each in (a, b)), scales_a[:, :m].T, of_b,
        optimize=True,
    )  # fmt: skip
    extents = configuration.rows, configuration.columns
    maps = [TensorMap(to_bytes(each), (rows, SCALED), swizzle=128) for each, rows in zip((a, b), extents, strict=True)]
    scale_maps = [TensorMap(each, (1, rows)) for each, rows in zip((scales_a, scales_b), extents, strict=True)]
    sizes = [np.uint32(extent) for extent in size]
    if configuration.square:
        out: npt.NDArray[Any] = np.full((m, n), 0x7FC0, np.uint16)
        mode = configuration.swizzle
        box = configuration.rows, mode // 2
        result = TensorMap(out, box, swizzle=mode if mode > 16 else 0, dtype="bfloat16")
        args = [squares, None, *sizes, *maps, result, scale_maps[0]]
    else:
        out = random.integers(-8, 8, (m, n)).astype(np.float32)
        expected = expected + out
        result = TensorMap(out, (64, configuration.columns))
        args = [None, None, None, None, *sizes, *maps, *scale_maps, result]
    done = launch(
        cubin, configuration.kernel + "_impl", configuration.blocks, 128 + configuration.math_threads, args,
        smem_bytes=SHARED, device="emulated:sm_90a", timeout_s=120,
        cluster=configuration.cluster if configuration.cluster > 1 else None,
    )  # fmt: skip
    found = next(each for each in outputs(done) if each.shape == (m, n) and each.dtype == out.dtype)
    right = bool((found == (to_bfloat16(expected) if configuration.square else expected)).all())
    return right, [f"{hazard.kind}: {hazard.message}" for hazard in done.hazards or ()]


def outputs(done: Launched) -> Iterator[npt.NDArray[Any]]:
    yield from (done.outputs.values() if isinstance(done.outputs, dict) else done.outputs)


def operand(random: np.random.Generator, rows: int, k: int) -> Floats:
    return random.choice(list(E4M3), (rows, k)).astype(np.float32) * random.choice([-1, 1], (rows, k)).astype(
        np.float32
    )


def to_bytes(values: Floats) -> npt.NDArray[np.uint8]:
    """Return the E4M3 bytes of numbers whose magnitudes are in `E4M3`."""
    found = np.zeros(values.shape, np.uint8)
    for value, byte in E4M3.items():
        found[np.abs(values) == value] = byte
    found[np.signbit(values)] |= 0x80
    return found


def to_bfloat16(values: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    """Return the bits of numbers that are rounded to BF16, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


if __name__ == "__main__":
    sys.exit(rows_of(CONFIGURATIONS, run, __doc__))
