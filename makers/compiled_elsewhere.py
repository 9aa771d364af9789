"""Compile kernels of Triton, Numba and CUTLASS to cubins, without a GPU, for `compiled_kernels.py`.

    python makers/compiled_elsewhere.py FOLDER CUTLASS [sm_90]

The interpreter must have `triton`, `numba-cuda`, `nvidia-nvvm`, `nvidia-cuda-nvrtc` and `nvidia-cuda-nvcc`; it need not
have gemmlab. CUTLASS is a checkout of NVIDIA/cutlass, whose kernels the `nvcc` of the path compiles. Each kernel
becomes FOLDER/NAME.cubin, and its launch FOLDER/NAME.json.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201 - the compilers read these functions, which have their types, not Python's
from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from numba import cuda, float32, int32
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

WARP = 32
MATRICES = {"a": [128, 96], "b": [96, 64], "c": [128, 64]}
"""Shapes of the operands of products, all in C order."""
CUTLASS_PRODUCT = """
#include <cutlass/gemm/device/gemm.h>

using Rows = cutlass::layout::RowMajor;
template <int... extents>
using Shape = cutlass::gemm::GemmShape<extents...>;
using Kernel = cutlass::gemm::device::Gemm<IN, Rows, IN, Rows, float, Rows, float, cutlass::arch::OpClassUNIT,
                                           cutlass::arch::Sm80, Shape<TILE>, Shape<WARP>, Shape<STEP>>::GemmKernel;

extern "C" __global__ void __launch_bounds__(Kernel::kThreadCount) NAME(int m, int n, int k, IN* a, IN* b, float* c)
{
    __shared__ Kernel::SharedStorage shared;
    const cutlass::gemm::GemmCoord problem(m, n, k);
    const auto tiles = Kernel::ThreadblockSwizzle().get_tiled_shape(problem, {TILE}, 1);
    const Kernel::Params params(problem, tiles, {a, Rows(k)}, {b, Rows(n)}, {c, Rows(n)}, {c, Rows(n)}, {});
    Kernel()(params, shared);
}
"""
"""A product. Its parameters, which CUTLASS's host code passes as one structure, are made in the kernel, so that a
launch needs no structure.
"""


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def layer_norm(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    centred = tl.where(at < columns, values - tl.sum(values, axis=0) / columns, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + 1e-5)
    tl.store(out + row * columns + at, centred * scale, mask=at < columns)


@triton.jit
def product(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    row, col, step = tl.program_id(1) * M + tl.arange(0, M), tl.program_id(0) * N + tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + row[:, None] * k + start + step[None, :], mask=(row[:, None] < m), other=0.0)
        right = tl.load(b + (start + step)[:, None] * n + col[None, :], mask=(col[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    inside = (row[:, None] < m) & (col[None, :] < n)
    tl.store(c + row[:, None] * n + col[None, :], total.to(c.dtype.element_ty), mask=inside)


def saxpy(n, factor, x, y):
    i = cuda.grid(1)
    if i < n:
        y[i] = factor * x[i] + y[i]


def tiled_product(a, b, c):
    left, right = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for start in range(a.shape[1] // 16):
        left[y, x] = a[row, start * 16 + x]
        right[y, x] = b[start * 16 + y, col]
        cuda.syncthreads()
        for k in range(16):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    c[row, col] = total


def column_sums(a, out):
    col = cuda.grid(1)
    if col < a.shape[1]:
        total = float32(0.0)
        for row in range(a.shape[0]):
            total += a[row, col]
        out[col] = total


def of_triton(folder: Path, number: int) -> None:
    """Compile the Triton kernels for the architecture `number` (90 for sm_90) into a folder."""
    rows = {"x": [40, 200], "out": [40, 200]}
    line = {"x": [1000], "y": [1000], "out": [1000]}
    kinds = {
        "float32": ("*fp32", "ieee"), "tf32": ("*fp32", "tf32"),
        "float16": ("*fp16", "ieee"), "bfloat16": ("*bf16", "ieee"),
    }  # fmt: skip
    made = [
        (add, "add", line, {"n": 1000}, {"BLOCK": 256}, "*fp32", [4], "x + y"),
        (softmax, "softmax", rows, {"columns": 200}, {"BLOCK": 256}, "*fp32", [40], "softmax"),
        (layer_norm, "layer_norm", rows, {"columns": 200}, {"BLOCK": 256}, "*fp32", [40], "layer norm"),
    ]
    for kind, (pointer, precision) in kinds.items():
        tile = {"M": 64, "N": 32, "K": 32, "PRECISION": precision}
        sizes = {"m": 128, "n": 64, "k": 96}
        made.append((product, f"product_{kind}", MATRICES, sizes, tile, pointer, [2, 2], "product"))
    for function, name, arrays, numbers, constants, pointer, grid, computes in made:
        types = {
            **dict.fromkeys(arrays, pointer), **dict.fromkeys(numbers, "i32"), **dict.fromkeys(constants, "constexpr"),
        }  # fmt: skip
        source = ASTSource(function, types, {(function.arg_names.index(n),): v for n, v in constants.items()})
        found = triton.compile(source, target=GPUTarget("cuda", number, WARP), options={"num_warps": 4})
        # Triton appends pointers to scratch memory, here unused.
        store(folder, f"triton_{name}", found.asm["cubin"], {
            "compiler": f"Triton {triton.__version__}", "kernel": found.metadata.name, "grid": grid, "threads": 128,
            "smem_bytes": found.metadata.shared, "type": pointer, "computes": computes,
            "args": [*({"array": shape} for shape in arrays.values()), *numbers.values(), None, None],
        })  # fmt: skip


def of_numba(folder: Path, number: int) -> None:
    """Compile the Numba kernels for the architecture `number` into a folder: Numba makes PTX, and the `ptxas` of the
    package `nvidia-cuda-nvcc` assembles it.
    """
    import numba
    import numba_cuda
    import nvidia

    ptxas = next(path for root in nvidia.__path__ for path in Path(root).glob("*/bin/ptxas"))
    matrix, vector = float32[:, ::1], float32[::1]
    made = [
        (saxpy, (int32, float32, vector, vector), [1000, 2.0, [1000], [1000]], [4], 256, "saxpy"),
        (tiled_product, (matrix, matrix, matrix), [*MATRICES.values()], [4, 8], [16, 16], "product"),
        (column_sums, (matrix, vector), [[50, 300], [300]], [3], 128, "column sums"),
    ]
    for function, types, args, grid, threads, computes in made:
        ptx, _ = cuda.compile_ptx(function, types, cc=divmod(number, 10), lineinfo=True)
        text, cubin = folder / f"{function.__name__}.ptx", folder / f"{function.__name__}.elf"
        text.write_text(ptx)
        subprocess.run([ptxas, f"-arch=sm_{number}", "-lineinfo", text, "-o", cubin], check=True)
        name = next(line.split("(")[0].split()[-1] for line in ptx.splitlines() if ".entry" in line)
        store(folder, f"numba_{function.__name__}", cubin.read_bytes(), {
            "compiler": f"Numba {numba.__version__}, numba-cuda {numba_cuda.__version__}", "kernel": name, "grid": grid,
            "threads": threads, "smem_bytes": 0, "type": "*fp32", "computes": computes,
            "args": [part for arg in args for part in (described(arg) if isinstance(arg, list) else [arg])],
        })  # fmt: skip
        text.unlink()
        cubin.unlink()


def of_cutlass(folder: Path, number: int, cutlass: Path) -> None:
    """Compile products of a checkout of CUTLASS for the architecture `number` into a folder."""
    version = (cutlass / "include/cutlass/version.h").read_text()
    parts = (re.search(rf"CUTLASS_{part}\s+(\d+)", version)[1] for part in ("MAJOR", "MINOR", "PATCH"))
    nvcc = shutil.which("nvcc") or sys.exit("no nvcc on the path")
    compiler = f"CUTLASS {'.'.join(parts)}, nvcc {release(nvcc)}"
    for kind, pointer, unit, tile, warp, step in (
        ("float32", "*fp32", "Simt", (128, 128, 8), (32, 64, 8), (1, 1, 1)),
        ("tf32", "*fp32", "TensorOp", (64, 64, 16), (32, 32, 16), (16, 8, 8)),
        ("float16", "*fp16", "TensorOp", (64, 64, 32), (32, 32, 32), (16, 8, 16)),
        ("bfloat16", "*bf16", "TensorOp", (64, 64, 32), (32, 32, 32), (16, 8, 16)),
    ):
        words = {
            "IN": {"*fp32": "float", "*fp16": "cutlass::half_t", "*bf16": "cutlass::bfloat16_t"}[pointer],
            "UNIT": unit, "NAME": f"product_{kind}", "TILE": tile, "WARP": warp, "STEP": step,
        }  # fmt: skip
        text = CUTLASS_PRODUCT
        for word, value in words.items():
            text = re.sub(rf"\b{word}\b|(?<=OpClass){word}", str(value).strip("()"), text)
        source, cubin = folder / f"product_{kind}.cu", folder / f"product_{kind}.elf"
        source.write_text(text)
        subprocess.run([nvcc, "-cubin", f"-arch=sm_{number}", "-std=c++17", "-lineinfo", "-w",
                        f"-I{cutlass / 'include'}", source, "-o", cubin], check=True)  # fmt: skip
        m, n, k = *MATRICES["c"], MATRICES["a"][1]
        store(folder, f"cutlass_product_{kind}", cubin.read_bytes(), {
            "compiler": compiler, "kernel": f"product_{kind}", "grid": [-(-m // tile[0]), -(-n // tile[1])],
            "threads": 32 * (tile[0] // warp[0]) * (tile[1] // warp[1]), "smem_bytes": 0,
            "type": [pointer, pointer, "*fp32"], "computes": "product",
            "args": [m, n, k, *({"array": shape} for shape in MATRICES.values())],
        })  # fmt: skip
        source.unlink()
        cubin.unlink()


def release(nvcc: str) -> str:
    """Return the version that `nvcc --version` says."""
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"release ([\d.]+)", said)[1]


def described(shape: list[int]) -> list[Any]:
    """Return the arguments that Numba passes for an array: two null pointers, the numbers of elements and of bytes of
    one, the memory, extents, strides.
    """
    count = 1
    for extent in shape:
        count *= extent
    strides = [4 * shape[1], 4] if len(shape) > 1 else [4]
    return [None, None, count, 4, {"array": shape}, *shape, *strides]


def store(folder: Path, name: str, cubin: bytes, facts: dict[str, Any]) -> None:
    """Write a kernel's machine code and facts."""
    (folder / f"{name}.cubin").write_bytes(cubin)
    (folder / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    sys.stderr.write(f"{name}: {len(cubin)} bytes\n")


if __name__ == "__main__":
    target, checkout = map(Path, sys.argv[1:3])
    architecture = int((sys.argv[3] if len(sys.argv) > 3 else "sm_90").removeprefix("sm_"))
    target.mkdir(parents=True, exist_ok=True)
    of_triton(target, architecture)
    of_numba(target, architecture)
    of_cutlass(target, architecture, checkout)
