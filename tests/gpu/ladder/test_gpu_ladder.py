"""The rungs of the matrix product on a GPU: many shapes, more than 2^31 results, and under compute-sanitizer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sanitized
from ladder_cases import MOST, random_cases, skinny_cases, tile_cases

from gemmlab.core.precision import FLOAT32, TF32_ROUNDOFF, UNIT_ROUNDOFF
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_memory import CudaBuffer
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import all_kernels
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.timing.process import importable_here
from gemmlab.verify.check import check_kernel

OP = GemmOp()
KERNELS = [kernel for kernel in all_kernels() if (kernel.device, kernel.op) == ("cuda", "gemm")]
SIDE, DEPTH = 46_341, 6
"""The least whose square is above 2^31."""
STRIP = 4096
SANITIZER = shutil.which("compute-sanitizer")
MORE = {"memcheck": ("--report-api-errors", "no"), "racecheck": ()}
"""The driver is asked for a kernel's parameters until it says that there are no more: no error of anybody's."""
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own
each_kernel = pytest.mark.parametrize("kernel", [pytest.param(kernel, id=kernel.id) for kernel in KERNELS])


def test_the_cases_are_what_they_are_for() -> None:
    for kernel in KERNELS:
        cases = random_cases(kernel, 0)
        assert cases == random_cases(kernel, 0) != random_cases(kernel, 1)
        assert {p.layout for p in cases} == set(kernel.layouts)
        assert all(1 <= extent <= MOST for p in cases for extent in (p.m, p.n, p.k))
        assert min(p.m for p in cases) < 30
        assert max(p.m for p in cases) > 270
        assert any(p.lda % 4 for p in cases)
        assert any(p.lda % 4 == p.ldb % 4 == p.ldc % 4 == 0 for p in cases)
        assert len({(p.m, p.n, p.k) for p in tile_cases(kernel)}) == 27
        assert all(min(p.m, p.n, p.k) < 20 for p in skinny_cases(kernel)[:7])


@each_kernel
def test_shapes_at_random_around_tiles_and_thin(kernel: Kernel, gpu: CudaDevice) -> None:
    # The seed is the kernel's own: together the rungs meet many shapes.
    cases = [*random_cases(kernel, kernel.step or 0), *tile_cases(kernel), *skinny_cases(kernel)]
    report = check_kernel(kernel, gpu, OP, cases=cases)
    assert report.passed, report.explain()
    assert report.cases == len(cases) or report.refused


@pytest.fixture(scope="module")
def many_results(gpu: CudaDevice) -> CudaBuffer:
    """Room for all of C, once for all rungs."""
    pytest.importorskip("torch")
    nbytes = 4 * SIDE * SIDE
    free, _ = gpu.memory.room()
    if free < nbytes + (6 << 30):
        pytest.skip(f"{free >> 30} GiB of GPU memory are free; 15 are needed")
    return gpu.allocate(nbytes)


@each_kernel
def test_more_results_than_an_int_counts(kernel: Kernel, gpu: CudaDevice, many_results: CudaBuffer) -> None:
    torch: Any = pytest.importorskip("torch")
    problem = GemmProblem(SIDE, SIDE, DEPTH)
    placed = place(kernel, gpu)
    if why := kernel.refusal(placed.config, OP.scalars(problem)):
        pytest.skip(why)
    rng = np.random.default_rng(0)
    a, b = (rng.random(shape, dtype=np.float32) - np.float32(0.5) for shape in ((SIDE, DEPTH), (DEPTH, SIDE)))
    c = torch.as_tensor(many_results, device=f"cuda:{gpu.ordinal}").view(torch.float32).reshape(SIDE, SIDE)
    c.fill_(float("nan"))
    torch.cuda.synchronize()
    buffers = {"a": gpu.upload(a), "b": gpu.upload(b), "c": many_results}
    placed.bind(OP, problem, buffers).run()
    wide_a, wide_b = (torch.from_numpy(array).to(c.device, torch.float64) for array in (a, b))
    unit = UNIT_ROUNDOFF if kernel.precision == FLOAT32 else 2 * TF32_ROUNDOFF
    for first in range(0, SIDE, STRIP):
        rows = wide_a[first : first + STRIP]
        bound = (DEPTH + 4) * unit * (rows.abs() @ wide_b.abs()) + 1e-37
        right = ((c[first : first + STRIP].double() - rows @ wide_b).abs() <= bound).all()
        assert bool(right), f"wrong in rows {first} to {first + STRIP}"


@pytest.mark.usefixtures("gpu")
@pytest.mark.timeout(600)
@pytest.mark.skipif(SANITIZER is None, reason="compute-sanitizer is not on the PATH")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_compute_sanitizer_finds_nothing(tool: str, gpu: CudaDevice) -> None:
    names = [kernel.id for kernel in KERNELS]
    command = [
        str(SANITIZER), "--tool", tool, *MORE[tool], "--error-exitcode", "9",
        sys.executable, str(Path(sanitized.__file__)), gpu.id, *names,
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=580,
        env={**os.environ, "PYTHONPATH": importable_here()},
    )  # fmt: skip
    said = done.stdout + done.stderr
    if "not supported" in said:
        pytest.skip(f"compute-sanitizer cannot work here: {said.strip()[-200:]}")
    assert done.returncode == 0, said[-4000:]
    assert re.findall(r"ran (\w+)", said) == names
    assert re.search(r"(ERROR SUMMARY: 0 errors|0 hazards displayed)", said), said[-500:]
