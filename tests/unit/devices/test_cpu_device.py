"""The processor as a device: memory, launching, timing, its peak."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.program import Artifact
from gemmlab.devices.cpu import CpuDevice
from gemmlab.devices.device import ReadingDevice
from gemmlab.kernels.bound import bind
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem


def built(kernel_id: str) -> Artifact:
    kernel, device = find_kernel(kernel_id), CpuDevice()
    return device.build(kernel.program(kernel.configure(), device.target({})))


def test_memory_is_lent_not_copied() -> None:
    device = CpuDevice()
    array = np.arange(12, dtype=np.float32)
    buffer = device.upload(array)
    assert (buffer.address, buffer.nbytes) == (array.ctypes.data, 48)
    device.download(buffer, array)
    other = np.zeros((3, 4), np.float32)
    device.download(buffer, other)
    assert other.ravel().tolist() == array.tolist()
    with pytest.raises(UsageError, match="only contiguous arrays"):
        device.upload(array[::2])


@pytest.mark.parametrize("nbytes", [1, 63, 64, 1000])
def test_memory_of_its_own_starts_on_a_cache_line(nbytes: int) -> None:
    buffer = CpuDevice().allocate(nbytes)
    assert buffer.nbytes == nbytes
    assert buffer.address % 64 == 0


def test_each_repeat_is_timed_apart() -> None:
    op, problem, rng = GemmOp(), GemmProblem(64, 64, 64), np.random.default_rng(0)
    arrays = {name: array.ravel() for name, array in op.fill(problem, rng).items()}
    for kernel in ("naive_ijk", "threaded"):
        times = bind(find_kernel(kernel), CpuDevice(), op, problem, arrays).time(5)
        assert len(times) == 5
        assert all(0 < one < 1e6 for one in times)


def test_the_same_code_is_linked_once() -> None:
    device, artifact = CpuDevice(), built("loop_reorder_ikj")
    assert device.load(artifact) is device.load(replace(artifact, compiler="another"))


@pytest.mark.in_turns(20)
def test_threads_that_load_at_once_all_get_working_code() -> None:
    def load(index: int) -> float:
        op, problem = GemmOp(), GemmProblem(9, 10, 11)
        config = {"KC": 64 + index % 4}
        arrays = {
            name: np.ones(array.size, np.float32) for name, array in op.fill(problem, np.random.default_rng(0)).items()
        }
        bind(find_kernel("packed"), CpuDevice(), op, problem, arrays, config=config).run()
        return float(arrays["c"][3])

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(load, range(16))) == {11.0}


def test_code_of_another_kind_or_processor_is_not_loaded() -> None:
    artifact = built("naive_ijk")
    with pytest.raises(UsageError, match="naive_ijk: the cpu device loads object code, not a cubin"):
        CpuDevice().load(replace(artifact, kind="cubin"))
    with pytest.raises(DeviceError, match="naive_ijk is for aarch64:4:another; this processor is"):
        CpuDevice().load(replace(artifact, target="aarch64:4:another"))


def test_a_program_in_another_language_is_refused() -> None:
    kernel, device = find_kernel("naive_ijk"), CpuDevice()
    program = replace(kernel.program(kernel.configure(), device.target({})), language="cuda")
    with pytest.raises(UsageError, match="written in cuda; the cpu device runs llvm code"):
        device.build(program)


def test_the_peak_is_a_rate_and_two_threads_add_theirs() -> None:
    one, two = (CpuDevice().measure_peak(threads, seconds=0.02) for threads in (1, 2))
    assert 0.5 < one < 2000
    assert two > 0.5 * one


def test_it_describes_itself() -> None:
    info = CpuDevice().describe()
    assert info.id == "cpu"
    assert info.name
    assert info.facts


def test_the_rate_of_reading_memory_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemmlab.codegen.read_rate._LEAST_BYTES", 1 << 20)
    monkeypatch.setattr("gemmlab.codegen.read_rate._MOST_BYTES", 1 << 20)
    from gemmlab.codegen.read_rate import _row

    _row.cache_clear()
    device = CpuDevice()
    assert isinstance(device, ReadingDevice)
    one, two = (device.measure_read(threads, 0.01) for threads in (1, 2))
    _row.cache_clear()
    assert 0.5 < one < 2000
    assert 0.5 < two < 4000
