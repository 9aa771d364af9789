"""The CUDA driver through cuda.bindings: open it, call its functions, and turn its statuses into exceptions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from gemmlab.core.errors import CompileError, DeviceError, WrongResultError
from gemmlab.core.time_limit import TimeLimit

INSTALL = "pip install 'gemmlab[cuda13]'"
_OUT_OF_MEMORY = 2
_NO_DEVICE = 100
_NOT_READY = 600
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 20e-6, 10e-3
_FAULTS = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": "it reads or writes memory that is not its own",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "an access is not aligned to its width",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "it ran into an illegal instruction",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": "an access is to the wrong memory space",
    "CUDA_ERROR_INVALID_PC": "it jumped out of its code",
    "CUDA_ERROR_HARDWARE_STACK_ERROR": "its stack overflowed",
    "CUDA_ERROR_ASSERT": "an assertion in it failed",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "it ran into the driver's time limit",
    "CUDA_ERROR_LAUNCH_FAILED": "it failed while it ran",
}
"""Status of a fault of a running kernel -> the fault in words. The process's context is lost after each of them."""


class KernelFaultError(WrongResultError):
    """A kernel faulted while it ran, and the process's GPU context is lost."""


class Driver:
    """The binding's functions by name: `driver("cuMemAlloc", 100)` checks the status and returns the result."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.occupied: list[Any] = []
        """Contexts with a kernel that did not end in time: memory and code in them are not freed, as that would
        wait.
        """
        self._process = os.getpid()

    def __call__(self, function: str, *arguments: Any, what: str = "") -> Any:
        """Call a function and return its result without the status: one value, a list of several, or `None`.

        `what` names the kernel or the purpose in messages. Raises `KernelFaultError` for a fault of a kernel,
        `MemoryError` if the GPU has too little memory, `DeviceError` for any other status.
        """
        status, *values = getattr(self.module, function)(*arguments)
        if int(status):
            raise self.error(status, function, what)
        return values[0] if len(values) == 1 else values or None

    def error(self, status: Any, function: str, what: str = "") -> Exception:
        """Return, but do not raise, the exception that a call of `function` raises for `status`, which is no success.

        `what` names the kernel or the purpose in the message; it may be empty.
        """
        name = self.name_of(status)
        who = f"{what}: " if what else ""
        if os.getpid() != self._process:
            return DeviceError(
                f"{who}{function} failed: {name}; a forked process cannot use a GPU that its parent has "
                "used: start processes by spawn or forkserver"
            )
        if name in _FAULTS:
            return KernelFaultError(
                f"{who}{_FAULTS[name]} ({name}); the GPU context of this process is lost. "
                "`--device emulated` names the line"
            )
        if int(status) == _OUT_OF_MEMORY:
            return MemoryError(f"{who}the GPU has too little memory left ({function})")
        return DeviceError(f"{who}{function} failed: {name}, {self.text_of(status)}")

    def name_of(self, status: Any) -> str:
        """Return the name of a status, such as `"CUDA_ERROR_NO_DEVICE"`; `"status N"` for one unknown to the driver."""
        found, name = self.module.cuGetErrorName(status)
        return f"status {int(status)}" if int(found) else _text(name)

    def text_of(self, status: Any) -> str:
        """Return the driver's description of a status."""
        found, text = self.module.cuGetErrorString(status)
        return "unknown to the driver" if int(found) else _text(text)

    @property
    def version(self) -> tuple[int, int]:
        """The newest CUDA version that the driver supports, (major, minor)."""
        number = int(self("cuDriverGetVersion"))
        return number // 1000, number % 1000 // 10

    def attribute(self, kind: str, name: str, *where: Any) -> int:
        """Return an attribute of a device or function: `attribute("device", "WARP_SIZE", device)`,
        `attribute("function", "NUM_REGS", function)`.
        """
        function, enumeration, prefix = {
            "device": ("cuDeviceGetAttribute", "CUdevice_attribute", "CU_DEVICE_ATTRIBUTE_"),
            "function": ("cuFuncGetAttribute", "CUfunction_attribute", "CU_FUNC_ATTRIBUTE_"),
        }[kind]
        return int(self(function, getattr(getattr(self.module, enumeration), prefix + name), *where))


@cache
def open_driver() -> Driver:
    """Return the driver, initialised; one for the process. `DeviceError` says what is missing (package, driver or GPU),
    that the driver does not start, or that it is too old for the installed compiler.
    """
    try:
        from cuda.bindings import driver as module
    except ImportError as error:
        raise DeviceError(f"the cuda device needs cuda-bindings ({error}): {INSTALL}") from error
    driver = Driver(module)
    try:
        (status,) = module.cuInit(0)
    except RuntimeError as error:
        raise DeviceError("no NVIDIA driver here for the cuda device; emulated needs no driver and no GPU") from error
    if int(status) == _NO_DEVICE:
        raise DeviceError("the NVIDIA driver sees no GPU for the cuda device; emulated needs none")
    if int(status):
        raise DeviceError(f"the NVIDIA driver does not start: {driver.name_of(status)}, {driver.text_of(status)}")
    _check_compiler(driver)
    return driver


@contextmanager
def preserved_context(driver: Driver | None = None) -> Iterator[None]:
    """After the block make the context current again that was current in this thread before it.

    Raises as `open_driver` does.
    """
    driver = driver or open_driver()
    before = driver("cuCtxGetCurrent")
    try:
        yield
    finally:
        driver("cuCtxSetCurrent", before)


def recorded(driver: Driver, stream: Any) -> Any:
    """Return an event that completes when the work that is now on a stream is done. The caller destroys the event."""
    event = driver("cuEventCreate", int(driver.module.CUevent_flags.CU_EVENT_DISABLE_TIMING))
    driver("cuEventRecord", event, stream)
    return event


def finished_in(driver: Driver, stream: Any, limit: TimeLimit) -> bool:
    """Wait until the work that is now on a stream is done, or `limit` has passed; return whether it is done.

    Raises as a call of `driver` does.
    """
    pause = _SHORTEST_WAIT_S
    while True:
        (status, *_none) = driver.module.cuStreamQuery(stream)
        if int(status) == 0:
            return True
        if int(status) != _NOT_READY:
            raise driver.error(status, "cuStreamQuery")
        if limit.passed:
            return False
        time.sleep(min(pause, limit.left))
        pause = min(2 * pause, _LONGEST_WAIT_S)


def order(driver: Driver, later: Any, earlier: Any) -> None:
    """Make work that is queued on the stream `later` from now on wait for the work that is now on `earlier`.

    The host does not wait.
    """
    event = recorded(driver, earlier)
    driver("cuStreamWaitEvent", later, event, 0)
    driver("cuEventDestroy", event)


def copier(driver: Driver, nbytes: int) -> Callable[[int, int, int], None]:
    """Return a function (to, from, stream) that queues a copy of `nbytes` bytes between addresses of the GPU whose
    context is current. It raises as a call of `driver` does.
    """
    call = driver.module.cuMemcpyDtoDAsync

    def copy(to: int, source: int, stream: int) -> None:
        (status,) = call(to, source, nbytes, stream)
        if status:
            raise driver.error(status, "cuMemcpyDtoDAsync")

    return copy


def compiler_version() -> str:
    """Return the installed CUDA compiler and its version, such as `"NVRTC 13.5.37"`; empty without one."""
    from gemmlab.toolchain.nvrtc import compiler

    try:
        return compiler()
    except CompileError:
        return ""


def _check_compiler(driver: Driver) -> None:
    compiler = compiler_version()
    major, minor = driver.version
    if compiler and (wanted := int(compiler.split()[-1].split(".")[0])) > major:
        raise DeviceError(
            f"the NVIDIA driver supports CUDA {major}.{minor} and does not load code by {compiler}: install a driver "
            f"for CUDA {wanted} (580 or newer for 13), or pip install 'gemmlab[cuda{major}]'"
        )


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
