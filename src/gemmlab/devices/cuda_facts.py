"""Facts about a GPU: its limits from the driver, and its current clocks from NVML, if nvidia-ml-py is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gemmlab.devices.cuda_driver import Driver, compiler_version
from gemmlab.devices.device import Clocks

_ATTRIBUTES = {
    "sms": "MULTIPROCESSOR_COUNT",
    "l2_bytes": "L2_CACHE_SIZE",
    "smem_per_sm": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "smem_per_block": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "smem_reserved": "RESERVED_SHARED_MEMORY_PER_BLOCK",
    "constant_bytes": "TOTAL_CONSTANT_MEMORY",
    "registers_per_sm": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "registers_per_block": "MAX_REGISTERS_PER_BLOCK",
    "threads_per_block": "MAX_THREADS_PER_BLOCK",
    "threads_per_sm": "MAX_THREADS_PER_MULTIPROCESSOR",
    "blocks_per_sm": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "warp": "WARP_SIZE",
    "clock_khz": "CLOCK_RATE",
    "memory_clock_khz": "MEMORY_CLOCK_RATE",
    "memory_bus_bits": "GLOBAL_MEMORY_BUS_WIDTH",
    "texture_1d_linear": "MAXIMUM_TEXTURE1D_LINEAR_WIDTH",
    "ecc": "ECC_ENABLED",
}
_THROTTLE = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "synchronised boost",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x100: "display clock",
}
"""Bits of NVML's reasons for a clock below the highest -> words. Idleness and clocks set by a user are left out."""


def device_facts(driver: Driver, device: Any) -> dict[str, Any]:
    """Return compute capability, sizes (bytes), counts, highest clocks (kHz) and versions by name."""
    facts: dict[str, Any] = {
        "compute_capability": ".".join(
            str(driver.attribute("device", f"COMPUTE_CAPABILITY_{part}", device)) for part in ("MAJOR", "MINOR")
        ),
        "memory_bytes": int(driver("cuDeviceTotalMem", device)),
        **{name: driver.attribute("device", attribute, device) for name, attribute in _ATTRIBUTES.items()},
    }
    from cuda import bindings

    facts["driver_cuda"] = ".".join(map(str, driver.version))
    facts["bindings"] = str(bindings.__version__)
    facts["compiler"] = compiler_version() or None
    return facts


class Nvml:
    """Current clocks of one GPU, and the driver's version, through nvidia-ml-py. `open_nvml` makes it."""

    def __init__(self, module: Any, handle: Any) -> None:
        self._module = module
        self._handle = handle

    def clocks(self) -> Clocks | None:
        """Return the current clocks; `None` if the GPU does not report them."""
        nvml, handle = self._module, self._handle
        reasons = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        reasons = reasons or nvml.nvmlDeviceGetCurrentClocksThrottleReasons
        try:
            mask = int(reasons(handle))
            return Clocks(
                sm_mhz=float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
                memory_mhz=float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
                throttle=tuple(name for bit, name in _THROTTLE.items() if mask & bit),
            )
        except nvml.NVMLError:
            return None

    def driver_version(self) -> str | None:
        """Return the driver's version, such as `"580.159.03"`; `None` if NVML does not report it."""
        try:
            version = self._module.nvmlSystemGetDriverVersion()
        except self._module.NVMLError:
            return None
        return version.decode() if isinstance(version, bytes) else str(version)


def open_nvml(driver: Driver, device: Any) -> Nvml | None:
    """Return NVML's view of a CUDA device, found by its PCI address; `None` if nvidia-ml-py is missing or fails."""
    try:
        pynvml: Any = import_module("pynvml")
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        place = driver("cuDeviceGetPCIBusId", 32, device)
        text = place.split(b"\0", 1)[0].decode() if isinstance(place, bytes) else str(place)
        return Nvml(pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(text))
    except pynvml.NVMLError:
        return None
