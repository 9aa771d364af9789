"""A GPU for the tests of this folder; without one they are skipped and say why."""

from __future__ import annotations

import pytest

from gemmlab.core.errors import DeviceError
from gemmlab.devices.cuda import CudaDevice


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
