"""A GPU for the tests of this folder; without one they are skipped and say why."""

from __future__ import annotations

import os

import pytest

from gemmlab.core.errors import DeviceError, NoCompilerError
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel

# JAX would take three quarters of the GPU's memory as soon as one of its arrays is made.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


@pytest.fixture(scope="session")
def gpu() -> CudaDevice:
    """The first GPU, timing with cold caches."""
    try:
        return CudaDevice()
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def warm_gpu(gpu: CudaDevice) -> CudaDevice:
    """The same GPU, timing with warm caches."""
    return CudaDevice(gpu.ordinal, "warm")


@pytest.fixture(scope="session")
def emulated_too(gpu: CudaDevice) -> str:
    """The device that emulates this GPU's architecture; skips where there is none, or no code can be given to it."""
    name = f"emulated:{gpu.target({})}"
    try:
        emulated, kernel = open_device(name), find_kernel("naive")
        emulated.load(emulated.build(kernel.program(kernel.configure(), emulated.target({}))))
    except (DeviceError, NoCompilerError) as error:
        pytest.skip(str(error))
    return name


@pytest.fixture
def alone() -> None:
    """Skip where other processes of this run use the GPU: the test measures its free memory or its rates."""
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
        pytest.skip("measures the whole GPU: run it with -n0")
