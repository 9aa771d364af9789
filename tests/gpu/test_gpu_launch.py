"""`gemmlab.launch` on a GPU, with arrays of other packages; and what is left after a kernel that breaks."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.arrays.on_gpu import device_array
from gemmlab.core.errors import UsageError
from gemmlab.devices.cuda import CudaDevice
from support.gpu_arrays import OnlyDlpack
from unit.launching.test_cooperative import rotate

SOURCE = """
extern "C" __global__ void axpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void slow(float* p, long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
    *p = 5.0f;
}
"""
N = 1000
pytestmark = [pytest.mark.usefixtures("gpu"), pytest.mark.filterwarnings("ignore")]


def launch(*args: Any, **more: Any) -> Any:
    return gemmlab.launch(SOURCE, "axpy", -(-N // 256), 256, args, device="cuda", **more)


def test_numpy_arrays_in_and_out() -> None:
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    done = launch(N, 2.0, x, y)
    assert (done.outputs[1] == 2 * x + 1).all()
    assert (y == 1).all()
    assert (done.counters, done.hazards, done.device) == (None, None, "cuda:0")


def test_a_gpu_is_the_default() -> None:
    y = np.ones(N, np.float32)
    assert gemmlab.launch(SOURCE, "axpy", 4, 256, [N, 1.0, y, y]).device == "cuda:0"


def test_a_ready_cubin_and_an_architecture_of_its_own(gpu: CudaDevice) -> None:
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    special = f"{gpu.target({})}a" if gpu.target({}) == "sm_90" else gpu.target({})
    made = launch(N, 2.0, x, y, arch=special).artifact
    assert made.target == special
    outputs: Any = gemmlab.launch(made.code, "axpy", 4, 256, [N, np.float32(3), x, y], device="cuda").outputs
    assert (outputs[1] == 3 * x + 1).all()


@pytest.mark.parametrize("package", ["torch", "cupy"])
def test_arrays_of_other_packages_are_read_and_left_alone(package: str) -> None:
    module = pytest.importorskip(package)
    x = module.arange(N, dtype=module.float32, **({"device": "cuda"} if package == "torch" else {}))
    y = module.ones_like(x)
    done = launch(N, 2.0, x, y)
    assert isinstance(done.outputs[1], np.ndarray)
    assert (done.outputs[1] == 2 * np.arange(N) + 1).all()
    assert float(y.sum()) == N
    with pytest.raises(UsageError, match="not C-contiguous"):
        launch(N // 2, 2.0, x[::2], y)


def test_an_array_that_only_speaks_dlpack() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("cuda.core.utils")

    x = torch.arange(N, dtype=torch.float32, device="cuda").reshape(10, 100)
    found = device_array(OnlyDlpack(x))
    assert (found.pointer, found.shape, found.strides, found.device) == (x.data_ptr(), (10, 100), (400, 4), 0)
    assert (launch(N, 1.0, OnlyDlpack(x), np.zeros(N, np.float32)).outputs[1] == np.arange(N)).all()


def test_work_that_another_package_has_queued_is_waited_for(gpu: CudaDevice) -> None:
    cupy = pytest.importorskip("cupy")
    slow = cupy.RawKernel(SOURCE, "slow")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        value = cupy.zeros(1, cupy.float32)
        slow((1,), (1,), (value, np.int64(200_000_000)))
        copy = gpu.upload(value)
    out = np.zeros(1, np.float32)
    gpu.download(copy, out)
    assert out[0] == 5.0


def test_memory_can_be_worked_on_in_place(gpu: CudaDevice) -> None:
    torch = pytest.importorskip("torch")
    from gemmlab.core.program import Launch

    x, y = (torch.ones(N, dtype=torch.float32, device="cuda") for _ in range(2))
    loaded = gpu.load(launch(N, 1.0, x, y).artifact)
    gpu.launch(loaded, Launch((np.int32(N), np.float32(3), gpu.borrow(x), gpu.borrow(y)), (4, 1, 1), (256, 1, 1)))
    assert float(y.sum()) == 4 * N


def test_a_kernel_that_breaks_is_named_and_the_context_counted_as_lost() -> None:
    program = """
import numpy as np, gemmlab
from gemmlab.core.errors import GemmlabError
source = 'extern "C" __global__ void wild(float* p) { p[1ll << 40] = 1; }'
for _ in range(2):
    try:
        gemmlab.launch(source, "wild", 1, 1, [np.zeros(1, np.float32)], device="cuda")
    except GemmlabError as error:
        print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=100)
    first, second = done.stdout.strip().split("\n")
    assert first.startswith("KernelFaultError wild: ")
    assert "ADDRESS" in first
    assert second.startswith("DeviceError the GPU context was lost when wild broke")


def test_a_kernel_that_runs_past_its_time_limit() -> None:
    program = f"""
import time
import numpy as np, gemmlab
source = {SOURCE!r}
cycles = 1 << 50
args = [np.zeros(1, np.float32), cycles]
print(gemmlab.launch(source, "slow", 1, 1, [args[0], 1000], device="cuda", timeout_s=5).outputs[0][0])
start = time.monotonic()
try:
    gemmlab.launch(source, "slow", 1, 1, args, device="cuda", timeout_s=0.5)
except gemmlab.TimeLimitError as error:
    print(error)
print(0.5 <= time.monotonic() - start < 1.5)
try:
    gemmlab.launch(source, "slow", 1, 1, args, device="cuda")
except gemmlab.DeviceError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    right, stopped, in_time, refused = done.stdout.splitlines()
    assert (right, in_time) == ("5.0", "True")
    assert stopped.startswith("slow: stopped at the time limit of 0.5 s: cuda:0 does not report")
    assert refused == "slow still runs on cuda:0 after its time limit; start the process again"


@pytest.mark.parametrize("blocks", [1, 7, 100])
def test_a_cooperative_grid_waits_for_all_of_its_blocks(blocks: int) -> None:
    done = rotate(blocks, "cuda", cooperative=True)
    assert (done.outputs[0] == np.roll(np.arange(blocks * 64), -64)).all()
