"""A GPU as a device: memory, launches, refusals, times, peaks."""

from __future__ import annotations

import gc
from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from gemmlab.core import gpu as limits
from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.program import Launch, Program
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_code import CudaLoaded
from gemmlab.devices.cuda_peaks import program
from gemmlab.devices.device import ClockedDevice, CountingDevice, PeakDevice, Window

SHARED = """
extern "C" __global__ void fill(int *p, int n) {
    extern __shared__ int shared[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) shared[i] = i;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = shared[n - 1 - i];
}
"""


def text_program(text: str, entry: str, target: str) -> Program:
    return Program(entry, "cuda", target, entry, "", lambda: text)


@pytest.fixture(scope="session")
def copy(gpu: CudaDevice) -> CudaLoaded:
    return gpu.load(gpu.build(program("copy_peak", gpu.target({}))))


def copying(gpu: CudaDevice, nbytes: int) -> Launch:
    source, to = gpu.upload(np.arange(nbytes // 4, dtype=np.float32)), gpu.allocate(nbytes)
    return Launch((to, source, np.int64(nbytes // 16)), (512, 1, 1), (256, 1, 1))


def test_it_describes_itself_as_the_table_of_architectures_does(gpu: CudaDevice) -> None:
    info = gpu.describe()
    assert info.id == "cuda:0"
    assert info.name
    known = limits.limits(gpu.target({}))
    assert info.facts["smem_per_block"] == known.smem_per_block
    assert info.facts["smem_per_sm"] == known.smem_per_sm
    assert info.facts["smem_reserved"] == known.smem_reserved
    assert info.facts["registers_per_sm"] == known.registers_per_sm
    assert info.facts["threads_per_sm"] == known.threads_per_sm
    assert info.facts["blocks_per_sm"] == known.blocks_per_sm
    assert info.facts["driver_cuda"].count(".") == 1


def test_it_is_what_the_layers_above_ask_for(gpu: CudaDevice) -> None:
    assert isinstance(gpu, ClockedDevice)
    assert isinstance(gpu, PeakDevice)
    assert not isinstance(gpu, CountingDevice)


@pytest.mark.parametrize("array", [np.arange(1000, dtype=np.float32), np.zeros((0, 4)), np.ones((3, 5), np.int8)])
def test_what_goes_up_comes_down(gpu: CudaDevice, array: np.ndarray) -> None:
    buffer = gpu.upload(array)
    assert buffer.nbytes == array.nbytes
    out = np.empty_like(array)
    gpu.download(buffer, out)
    assert (out == array).all()
    gpu.free(buffer)
    gpu.free(buffer)


@pytest.mark.usefixtures("alone")
def test_memory_that_nobody_holds_is_free_again(gpu: CudaDevice) -> None:
    before, _ = gpu.memory.room()
    for _ in range(20):
        gpu.allocate(1 << 28)
        gc.collect()
    after, _ = gpu.memory.room()
    assert before - after < 1 << 29
    with pytest.raises(MemoryError, match="the GPU has too little memory left"):
        gpu.allocate(1 << 45)


def test_a_launch_works_on_windows_too(gpu: CudaDevice, copy: CudaLoaded) -> None:
    data = np.arange(1024, dtype=np.float32)
    whole, to = gpu.upload(data), gpu.allocate(4096)
    gpu.launch(copy, Launch((to, Window(whole, 1024, 2048), np.int64(128)), (1, 1, 1), (32, 1, 1)))
    out = np.zeros(1024, np.float32)
    gpu.download(to, out)
    assert (out[:512] == data[256:768]).all()


def test_more_than_48_kib_of_shared_memory_is_asked_for(gpu: CudaDevice) -> None:
    loaded = gpu.load(gpu.build(text_program(SHARED, "fill", gpu.target({}))))
    for words in (100, 20_000, 12_000, gpu.facts["smem_per_block"] // 4):
        out = np.zeros(words, np.int32)
        buffer = gpu.upload(out)
        gpu.launch(loaded, Launch((buffer, np.int32(words)), (1, 1, 1), (256, 1, 1), 4 * words))
        gpu.download(buffer, out)
        assert (out == np.arange(words)[::-1]).all()
    with pytest.raises(DeviceError, match=r"fill needs .* bytes of shared memory a block"):
        gpu.launch(loaded, Launch((buffer, np.int32(1)), (1, 1, 1), (32, 1, 1), gpu.facts["smem_per_block"] + 4))


def test_launches_that_cannot_run_are_refused(gpu: CudaDevice, copy: CudaLoaded) -> None:
    launch = copying(gpu, 4096)
    for change, said in (
        ({"args": launch.args[:2]}, "copy_peak takes arguments of"),
        ({"args": (*launch.args[:2], np.int32(1))}, "copy_peak takes arguments of"),
        ({"args": (*launch.args[:2], 1)}, "a kernel takes buffers and NumPy scalars"),
        ({"threads": (1025, 1, 1)}, "1025 threads a block"),
        ({"grid": (1, 65536, 1)}, "a grid of"),
        ({"grid": (0, 1, 1)}, "a grid of"),
    ):
        with pytest.raises(UsageError, match=said):
            gpu.launch(copy, replace(launch, **change))
    gpu.launch(copy, launch)


def test_code_that_is_not_for_it_is_refused(gpu: CudaDevice, copy: CudaLoaded) -> None:
    other = "sm_75" if gpu.target({}) != "sm_75" else "sm_90"
    with pytest.raises(DeviceError, match=f"copy_peak is for {other}"):
        gpu.load(replace(copy.artifact, target=other))
    with pytest.raises(DeviceError, match="cuModuleLoadData failed"):
        gpu.load(replace(copy.artifact, code=b"\x7fELF" + bytes(100), digest="broken"))
    with pytest.raises(DeviceError, match="cuModuleGetFunction failed"):
        gpu.load(replace(copy.artifact, entry="nothing"))
    assert gpu.load(copy.artifact) is copy


def test_cold_runs_are_slower_where_the_cache_would_hold_the_data(
    gpu: CudaDevice, warm_gpu: CudaDevice, copy: CudaLoaded
) -> None:
    nbytes = int(gpu.facts["l2_bytes"]) // 4
    cold, warm = (median(device.time(copy, copying(device, nbytes), 50)) for device in (gpu, warm_gpu))
    assert 1 < warm < cold < 10_000


def test_runs_in_a_row_are_no_slower_than_runs_apart(warm_gpu: CudaDevice, copy: CudaLoaded) -> None:
    launch = copying(warm_gpu, 1 << 16)
    apart, in_a_row = median(warm_gpu.time(copy, launch, 50)), median(warm_gpu.time(copy, launch, 20, inner=50))
    assert 0.5 < in_a_row < 1.1 * apart


def test_the_peaks_are_near_what_the_figures_of_the_gpu_say(gpu: CudaDevice) -> None:
    measured = gpu.measure_peaks()
    facts = gpu.facts
    lanes = limits.limits(gpu.target({})).fma_lanes
    computed = facts["sms"] * lanes * 2 * facts["clock_khz"] / 1e6
    assert 0.8 * computed < measured["fma_gflops"] < 1.02 * computed
    assert 100 < measured["copy_gbs"] < 20_000
    if facts["compute_capability"] == "9.0":
        # 6.05 cycles of a partition for 1024 multiply-adds, at a clock that power may hold back.
        assert 0.8 < measured["mma_tf32_gflops"] / (facts["sms"] * 4 * 2048 / 6.05 * facts["clock_khz"] / 1e6) < 1.05


def test_clocks_are_told_where_nvml_is_installed(gpu: CudaDevice) -> None:
    pytest.importorskip("pynvml")
    gpu.measure_peak(seconds=0.05)
    clocks = gpu.clocks()
    assert clocks is not None
    assert 100 < clocks.sm_mhz <= 1.01 * gpu.facts["clock_khz"] / 1e3
    assert clocks.memory_mhz > 100
