"""Products of other types, other operations and constants on a GPU: right there as on the emulator, and timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.devices.cuda import CudaDevice
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.verify.check import check_kernel
from support.paths import DATA, ROOT
from support.typed_kernels import KINDS, kernel_file

OPERATIONS = ROOT / "examples" / "operations"
NAMES = sorted(path.stem for path in OPERATIONS.glob("*.cu"))


@pytest.mark.parametrize("kind", KINDS)
def test_products_of_each_type_are_right(gpu: CudaDevice, tmp_path: Path, kind: str) -> None:
    kernel = user_kernel(kernel_file(tmp_path, kind))
    found = check_kernel(kernel, gpu, find_op(kernel.op))
    assert found.passed, found.explain()


@pytest.mark.parametrize("kind", ["half_in_half", "whole"])
def test_errors_are_rejected(gpu: CudaDevice, tmp_path: Path, kind: str) -> None:
    kernel = user_kernel(kernel_file(tmp_path, kind, "one step too few"))
    assert not check_kernel(kernel, gpu, find_op(kernel.op)).passed


@pytest.mark.parametrize("name", NAMES)
def test_operations_are_right_and_timed(gpu: CudaDevice, name: str) -> None:
    source, op = OPERATIONS / f"{name}.cu", str(OPERATIONS / f"{name}.py")
    assert gemmlab.check(source, op=op, device=gpu.id).passed
    timed = gemmlab.bench(source, op=op, device=gpu.id, rounds=3, processes=1)
    assert not timed.wrong
    assert all(row["median_us"] > 0 for row in timed.rows())


def test_halves_are_timed_without_a_peak(gpu: CudaDevice, tmp_path: Path) -> None:
    timed = gemmlab.bench(kernel_file(tmp_path, "half_in_half"), device=gpu.id, sizes=512, rounds=3, processes=1)
    assert not timed.wrong
    assert timed.record.op == "gemm:float16"
    assert {result.contestant for result in timed.record.results} == {"kernel:half_in_half"}


def test_a_file_whose_blocks_wait_for_each_other_is_right_and_timed(gpu: CudaDevice) -> None:
    file = DATA / "user_kernels" / "waits_for_all.cu"
    assert gemmlab.check(file, device=gpu.id).passed
    timed = gemmlab.bench(file, device=gpu.id, sizes=512, rounds=3, processes=1)
    assert not timed.wrong
    assert all(row["median_us"] > 0 for row in timed.rows())


def test_constants_are_set(gpu: CudaDevice) -> None:
    source = "__constant__ float taps[2]; __global__ void sum(float* y) { y[threadIdx.x] = taps[0] + taps[1]; }"
    given: dict[str, Any] = {"taps": np.array([1.5, 2.0], np.float32)}
    done = gemmlab.launch(source, "sum", 1, 8, [np.zeros(8, np.float32)], device=gpu.id, constants=given)
    (found,) = done.outputs
    assert np.asarray(found).tolist() == [3.5] * 8
