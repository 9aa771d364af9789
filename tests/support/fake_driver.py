"""The CUDA driver's functions over memory of this process, for tests without a GPU."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

PARAMS = (8, 4)
_ERRORS = {
    1: b"CUDA_ERROR_INVALID_VALUE", 2: b"CUDA_ERROR_OUT_OF_MEMORY", 3: b"CUDA_ERROR_NOT_INITIALIZED",
    201: b"CUDA_ERROR_INVALID_CONTEXT", 500: b"CUDA_ERROR_NOT_FOUND", 700: b"CUDA_ERROR_ILLEGAL_ADDRESS",
}  # fmt: skip


_FUNCTIONS = {
    "cuGetErrorName": "get_error_name",
    "cuGetErrorString": "get_error_string",
    "cuCtxSetCurrent": "ctx_set_current",
    "cuCtxGetCurrent": "ctx_get_current",
    "cuCtxGetDevice": "ctx_get_device",
    "cuDevicePrimaryCtxRetain": "device_primary_ctx_retain",
    "cuStreamCreate": "stream_create",
    "cuDriverGetVersion": "driver_get_version",
    "cuDeviceGetCount": "device_get_count",
    "cuDeviceGet": "device_get",
    "cuDeviceGetName": "device_get_name",
    "cuDeviceTotalMem": "device_total_mem",
    "cuDeviceGetAttribute": "device_get_attribute",
    "cuMemAlloc": "mem_alloc",
    "cuMemFree": "mem_free",
    "cuMemcpyHtoDAsync": "memcpy_hd_async",
    "cuModuleLoadData": "module_load_data",
    "cuModuleUnload": "module_unload",
    "cuModuleGetFunction": "module_get_function",
    "cuFuncGetAttribute": "func_get_attribute",
    "cuFuncSetAttribute": "func_set_attribute",
    "cuFuncGetParamInfo": "func_get_param_info",
    "cuLaunchKernel": "launch_kernel",
    "cuPointerGetAttribute": "pointer_get_attribute",
    "cuMemcpyDtoHAsync": "memcpy_hd_async",
}
"""The driver's names for what the fake below does; everything else succeeds and does nothing."""


class Names:
    """An enumeration whose members are their own names."""

    def __getattr__(self, name: str) -> str:
        return name


@dataclass
class FakeModule:
    """The functions of `cuda.bindings.driver` that a device calls, over memory of this process.

    The kernel `double` doubles n floats; `wild` breaks, and every call after it.
    """

    memory: dict[int, Any] = field(default_factory=dict)
    attributes: list[tuple[str, int]] = field(default_factory=list)
    params: tuple[int, ...] = PARAMS
    threads: int = 256
    kernels: dict[str, Any] = field(default_factory=dict)
    """More kernels, by a part of their name: functions of the addresses of their arguments."""
    launches: list[tuple[Any, ...]] = field(default_factory=list)
    """Function, extents, shared memory and stream of each."""
    contexts: list[Any] = field(default_factory=list)
    """That were made current, in order."""
    modules: int = 0
    broken: bool = False

    CUdevice_attribute = CUfunction_attribute = CUpointer_attribute = Names()
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("cu"):
            return lambda *arguments: self._call(name, *arguments)
        raise AttributeError(name)

    def _call(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        if self.broken and name not in {"cuGetErrorName", "cuGetErrorString"}:
            return 700, None
        found = getattr(self, _FUNCTIONS[name])(*arguments) if name in _FUNCTIONS else 0
        return found if isinstance(found, tuple) else (0,) if found == 0 else (0, found)

    def get_error_name(self, status: int) -> tuple[int, bytes]:
        return 0, _ERRORS[status]

    def get_error_string(self, _status: int) -> tuple[int, bytes]:
        return 0, b"what it means"

    def ctx_set_current(self, context: Any) -> int:
        self.contexts.append(context)
        return 0

    def ctx_get_current(self) -> tuple[int, Any]:
        return 0, self.contexts[-1] if self.contexts else "the caller's"

    def ctx_get_device(self) -> tuple[int, int]:
        return 0, int(self.contexts[-1].removeprefix("context of "))

    def device_primary_ctx_retain(self, device: int) -> str:
        return f"context of {device}"

    def stream_create(self, _flags: int) -> str:
        return "a stream"

    def driver_get_version(self) -> int:
        return 13000

    def device_get_count(self) -> tuple[int, int]:
        return 0, 2

    def device_get(self, ordinal: int) -> tuple[int, int]:
        return 0, ordinal

    def device_get_name(self, _length: int, _device: int) -> bytes:
        return b"A GPU\0\0"

    def device_total_mem(self, _device: int) -> int:
        return 1 << 34

    def device_get_attribute(self, name: str, _device: int) -> tuple[int, int]:
        known = {"CAPABILITY_MAJOR": 8, "CAPABILITY_MINOR": 9, "PER_BLOCK_OPTIN": 100_000}
        return 0, next((value for part, value in known.items() if part in name), 7)

    def mem_alloc(self, nbytes: int) -> int:
        block = ctypes.create_string_buffer(nbytes)
        self.memory[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def mem_free(self, address: int) -> int:
        del self.memory[address]
        return 0

    def memcpy_hd_async(self, to: int, source: int, nbytes: int, _stream: Any) -> int:
        ctypes.memmove(to, source, nbytes)
        return 0

    def module_load_data(self, _code: bytes) -> str:
        self.modules += 1
        return "module"

    def module_unload(self, _module: str) -> int:
        self.modules -= 1
        return 0

    def module_get_function(self, _module: str, name: bytes) -> tuple[int, str]:
        return (500, "") if name == b"missing" else (0, name.decode())

    def func_get_attribute(self, name: str, _function: str) -> tuple[int, int]:
        return 0, self.threads if "THREADS" in name else 1000

    def func_set_attribute(self, _function: str, name: str, value: int) -> int:
        self.attributes.append((name, value))
        return 0

    def func_get_param_info(self, _function: str, index: int) -> tuple[int, ...]:
        return (0, 8 * index, self.params[index]) if index < len(self.params) else (1, 0, 0)

    def launch_kernel(self, function: str, *arguments: Any) -> int:
        self.launches.append((function, *arguments[:8]))
        if function == "wild":
            self.broken = True
            return 0
        for name, kernel in self.kernels.items():
            if name in function:
                kernel(*(ctypes.c_void_p * len(self.params)).from_address(arguments[8]))
                return 0
        pointers = (ctypes.c_void_p * 2).from_address(arguments[8])
        assert pointers[0] is not None
        assert pointers[1] is not None
        start, count = ctypes.c_uint64.from_address(pointers[0]).value, ctypes.c_int32.from_address(pointers[1]).value
        floats = np.ctypeslib.as_array((ctypes.c_float * count).from_address(start))
        floats *= 2
        return 0

    def pointer_get_attribute(self, name: str, pointer: int) -> tuple[int, Any]:
        # Asked for the ordinal itself, cuda-bindings 13.0 says 0 of every GPU.
        return 0, f"context of {self.ordinal_of(pointer)}" if name.endswith("CONTEXT") else 0

    def ordinal_of(self, _pointer: int) -> int:
        return 1
