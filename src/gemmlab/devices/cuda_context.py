"""The context of one GPU, with driver and stream. Uses are refused after a kernel's fault or a kernel that did not end
in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from gemmlab.core.errors import DeviceError
from gemmlab.devices.cuda_driver import KernelFaultError, open_driver
from gemmlab.devices.cuda_facts import device_facts
from gemmlab.devices.cuda_memory import CudaMemory
from gemmlab.devices.cuda_timing import Mode
from gemmlab.devices.device_name import DeviceIdentity, DeviceName


class CudaContext(DeviceIdentity):
    """The primary context of GPU number `ordinal`, which torch, CuPy and the CUDA runtime use too, and a new `stream`.

    The constructor makes it current. It raises `DeviceError` if there is no such GPU, and as `open_driver` does.
    """

    def __init__(self, ordinal: int = 0, mode: Mode = "cold") -> None:
        self._driver = driver = open_driver()
        count = int(driver("cuDeviceGetCount"))
        if not 0 <= ordinal < count:
            names = ", ".join(f"cuda:{index}" for index in range(count)) or "none"
            raise DeviceError(f"no device cuda:{ordinal}; GPUs here: {names}")
        self.device_name, self.ordinal = DeviceName("cuda", str(ordinal)), ordinal
        self.mode = mode
        self._device = driver("cuDeviceGet", ordinal)
        self._context = driver("cuDevicePrimaryCtxRetain", self._device)
        self._current = driver.module.cuCtxGetCurrent
        self._lost = ""
        self._enter()
        self.stream = driver("cuStreamCreate", int(driver.module.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self.memory = CudaMemory(driver, self._context, self.stream)

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Facts that the driver reports about the GPU (`cuda_facts.device_facts`)."""
        self._enter()
        return device_facts(self._driver, self._device)

    @cached_property
    def name(self) -> str:
        """The name of the model, `"NVIDIA H200"`."""
        name = self._driver("cuDeviceGetName", 256, self._device)
        return name.split(b"\0", 1)[0].decode("utf-8", "replace") if isinstance(name, bytes) else str(name)

    def activate(self) -> None:
        """Make the GPU's context current in this thread, for another package that uses the current context.

        Raises `DeviceError` if the context is lost.
        """
        self._enter()

    @property
    def is_current(self) -> bool:
        """True if the GPU's context is current in this thread and not lost."""
        # An error instead of a current context means that this context is not current.
        return bool(self._current()[1] == self._context) and not self._lost

    def _enter(self) -> None:
        if self._lost:
            raise DeviceError(f"{self._lost}; start the process again")
        self._driver("cuCtxSetCurrent", self._context)

    @contextmanager
    def _blaming(self, what: str) -> Iterator[None]:
        """If a kernel faults within the block, raise `KernelFaultError` that names `what`; refuse later uses of the
        device.
        """
        try:
            yield
        except KernelFaultError as error:
            self._lost = f"the GPU context was lost when {what} broke"
            raise KernelFaultError(f"{what}: {error}") from error
