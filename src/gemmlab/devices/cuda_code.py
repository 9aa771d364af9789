"""Load a kernel from a cubin into GPU memory, check its launches before the driver gets them, and queue them."""

from __future__ import annotations

import ctypes
import re
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.program import Artifact, Launch
from gemmlab.devices.cuda_driver import Driver, KernelFaultError, preserved_context

_WORD = 8
_STATIC_LIMIT = 48 * 1024
"""Bytes of shared memory of a block that every launch may use; more must be requested for the kernel."""
_LARGE, _ALL = 96 * 1024, 100
"""After a launch with at least `_LARGE` bytes of dynamic shared memory a kernel has a carveout of `_ALL` percent: its
multiprocessors have as much shared memory as possible. Later launches have it too, as a change takes microseconds.
"""
_TARGET = re.compile(r"sm_(\d+)(\d)([af]?)")


@dataclass(frozen=True, eq=False)
class CudaLoaded:
    """A kernel in GPU memory; `function` is the driver's handle, `threads_per_block` the most threads of a block.

    `param_bytes` are the sizes of its parameters; `None` if the driver does not report them.
    """

    artifact: Artifact
    function: Any
    static_smem_bytes: int
    threads_per_block: int
    param_bytes: tuple[int, ...] | None
    allowed: dict[str, int] = field(default_factory=dict)
    """Requests made so far for the kernel: `smem`, the most bytes of dynamic shared memory; `clusters`, 1 if clusters
    of more than 8 blocks are allowed. A request that was not made is absent.
    """


def load_code(driver: Driver, context: Any, artifact: Artifact) -> CudaLoaded:
    """Load a cubin into `context`, which must be current; it is unloaded when nothing refers to the result.

    Raises `DeviceError` if the driver refuses the code, or if the code has no kernel named `artifact.entry`.
    """
    kernel = artifact.kernel
    what = f"{kernel}, compiled by {artifact.compiler} for {artifact.target}, driver for CUDA {driver.version[0]}"
    module = driver("cuModuleLoadData", artifact.code, what=what)
    try:
        function = driver("cuModuleGetFunction", module, artifact.entry.encode(), what=f"{kernel}: {artifact.entry}")
    except DeviceError:
        driver("cuModuleUnload", module)
        raise
    loaded = CudaLoaded(
        artifact=artifact,
        function=function,
        static_smem_bytes=driver.attribute("function", "SHARED_SIZE_BYTES", function),
        threads_per_block=driver.attribute("function", "MAX_THREADS_PER_BLOCK", function),
        param_bytes=_parameters(driver, function),
    )
    weakref.finalize(loaded, _unload, driver, context, module).atexit = False
    return loaded


def runs_on(target: str, compute_capability: str) -> bool:
    """Return whether machine code for `target` (`"sm_86"`) runs on a GPU of `compute_capability` (`"8.9"`).

    Code runs on its own capability and on later minor versions of the same major version; so does code with features
    of a family (suffix `f`, as in `"sm_100f"`). Code with features of one architecture (`"sm_90a"`) runs on its own
    capability only. For an unknown target the result is false.
    """
    match = _TARGET.fullmatch(target)
    if match is None:
        return False
    here, wanted = tuple(map(int, compute_capability.split("."))), (int(match[1]), int(match[2]))
    return wanted == here or (match[3] != "a" and wanted[0] == here[0] and wanted[1] < here[1])


def argument_bytes(kernel: str, argument: Any) -> npt.NDArray[Any]:
    """Return an argument as the kernel receives it: a NumPy scalar's own bytes, or a buffer's address in 8 bytes.

    Raises `UsageError` for any other argument.
    """
    if isinstance(argument, np.generic):
        return np.array(argument)
    address = getattr(argument, "address", None)
    if address is None:
        raise UsageError(
            f"{kernel}: argument {argument!r} is a {type(argument).__name__}; a kernel takes buffers and NumPy scalars"
        )
    return np.array(address, np.uint64)


def check_launch(loaded: CudaLoaded, launch: Launch, sizes: tuple[int, ...], gpu: str, most_smem: int) -> None:
    """Check a launch. `sizes` are the bytes of its arguments, `gpu` the GPU's name.

    Raises `UsageError` for an impossible block or grid, or (if the driver reports parameters) for arguments of other
    sizes, and `DeviceError` for more than `most_smem` bytes of shared memory a block.
    """
    kernel, threads = loaded.artifact.kernel, int(np.prod(launch.threads))
    if not 1 <= threads <= loaded.threads_per_block:
        raise UsageError(
            f"{kernel}: {threads} threads a block; with its registers at most {loaded.threads_per_block} run"
        )
    x, y, z = launch.grid
    if x > 2**31 - 1 or max(y, z) > 65535 or min(launch.grid) < 1:
        raise UsageError(f"{kernel}: a grid of {launch.grid}; extents are 1 to 2147483647, 65535 and 65535")
    needed = loaded.static_smem_bytes + launch.smem_bytes
    if needed > most_smem:
        raise DeviceError(f"{kernel} needs {needed} bytes of shared memory a block; {gpu} has {most_smem}")
    if loaded.param_bytes is not None and sizes != loaded.param_bytes:
        raise UsageError(f"{kernel} takes arguments of {loaded.param_bytes} bytes and got {sizes}")


@dataclass(frozen=True, slots=True, eq=False)
class ArgumentBlock:
    """Memory for the arguments of a launch, each in a multiple of eight bytes. `memory` keeps it alive."""

    words: memoryview[int]
    """The block as 64-bit words."""
    floats: memoryview[float]
    """The block as float32, two in each word: a float argument is the first of its word, the second is not read."""
    pointers: int
    """Address of an array with the address of each argument, as the driver's launch functions take it."""
    memory: tuple[Any, ...] = field(repr=False)


class WordsLaunch:
    """A checked launch of a kernel that is cheap to repeat with other arguments.

    Its arguments have at most eight bytes, except for structures, which come last; so argument i, if it is no
    structure, is word i of an `ArgumentBlock`. A caller takes a block, changes some words, queues launches on streams
    and gives the block back. Until then no other thread uses the block. The driver has read the block when `enqueue`
    returns.
    """

    def __init__(self, driver: Driver, loaded: CudaLoaded, launch: Launch) -> None:
        kernel = loaded.artifact.kernel
        self._driver, self._loaded = driver, loaded
        self._call: Callable[..., tuple[Any, ...]]
        extents = (*launch.grid, *launch.threads, launch.smem_bytes)
        if launch.early:
            self._call = _early_call(driver, loaded, launch)
        else:
            self._call = partial(driver.module.cuLaunchKernel, loaded.function, *extents)
        sizes, words = list[int](), list[int]()
        for argument in launch.args:
            content = argument_bytes(kernel, argument).tobytes()
            sizes.append(-(-len(content) // _WORD) * _WORD)
            words += (int.from_bytes(content[at : at + _WORD], "little") for at in range(0, len(content), _WORD))
        self._arguments = tuple(words)
        self._offsets = (0, *accumulate(sizes[:-1])) if sizes else ()
        self._spare: list[ArgumentBlock] = []

    def take(self) -> ArgumentBlock:
        """Return a block for one caller. Words hold the launch's own arguments, or those of an earlier caller."""
        try:
            return self._spare.pop()
        except IndexError:
            return self._block()

    def give(self, block: ArgumentBlock) -> None:
        """Give a block back, for the next caller."""
        self._spare.append(block)

    def enqueue(self, stream: int, block: ArgumentBlock) -> None:
        """Queue the launch on a stream of the current context, without waiting for its end.

        The caller must keep the memory that the arguments point to alive. Raises as a call of `Driver` does.
        """
        (status,) = self._call(stream, block.pointers, 0)
        if status:
            raise self._driver.error(status, "cuLaunchKernel", self._loaded.artifact.kernel)

    def _block(self) -> ArgumentBlock:
        values = (ctypes.c_uint64 * len(self._arguments))(*self._arguments)
        start = ctypes.addressof(values)
        places = (ctypes.c_uint64 * len(self._offsets))(*(start + offset for offset in self._offsets))
        flat = memoryview(values).cast("B")
        return ArgumentBlock(flat.cast("Q"), flat.cast("f"), ctypes.addressof(places), (values, places))


def allow_smem(driver: Driver, loaded: CudaLoaded, smem_bytes: int) -> None:
    """Request `smem_bytes` of dynamic shared memory for a kernel.

    Nothing is done if every launch may use that much without a request, or if as much was requested before.
    """
    if loaded.static_smem_bytes + smem_bytes > _STATIC_LIMIT and loaded.allowed.get("smem", 0) < smem_bytes:
        attribute = driver.module.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver("cuFuncSetAttribute", loaded.function, attribute, smem_bytes, what=loaded.artifact.kernel)
        loaded.allowed["smem"] = smem_bytes
        if smem_bytes >= _LARGE:
            attribute = driver.module.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            driver("cuFuncSetAttribute", loaded.function, attribute, _ALL, what=loaded.artifact.kernel)


def allow_clusters(driver: Driver, loaded: CudaLoaded, launch: Launch) -> None:
    """Allow clusters of more than 8 blocks if the launch has `wide_clusters`, unless that was done before."""
    if launch.wide_clusters and not loaded.allowed.get("clusters", 0):
        attribute = driver.module.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        driver("cuFuncSetAttribute", loaded.function, attribute, 1, what=loaded.artifact.kernel)
        loaded.allowed["clusters"] = 1


def launch_config(driver: Driver, launch: Launch, stream: Any) -> Any:
    """Return the driver's description of a launch on `stream`, with its attributes: cluster, cooperative, early."""
    module = driver.module
    config, attributes = module.CUlaunchConfig(), list[Any]()
    config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = launch.threads
    config.sharedMemBytes, config.hStream = launch.smem_bytes, stream
    if launch.cluster is not None:
        extent = module.CUlaunchAttribute()
        extent.id = module.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        sizes = extent.value.clusterDim
        sizes.x, sizes.y, sizes.z = launch.cluster
        attributes.append(extent)
    if launch.cooperative:
        together = module.CUlaunchAttribute()
        together.id = module.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        together.value.cooperative = 1
        attributes.append(together)
    if launch.early:
        early = module.CUlaunchAttribute()
        early.id = module.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        early.value.programmaticStreamSerializationAllowed = 1
        attributes.append(early)
    config.attrs, config.numAttrs = attributes, len(attributes)
    return config


def _early_call(driver: Driver, loaded: CudaLoaded, launch: Launch) -> Callable[..., tuple[Any, ...]]:
    """Return a function (stream, pointers, extra) -> (status,) that queues a launch which may begin early.

    Only one thread at a time may call it.
    """
    config = launch_config(driver, launch, 0)

    def call(stream: int, pointers: int, extra: int) -> tuple[Any, ...]:
        config.hStream = stream
        status: tuple[Any, ...] = driver.module.cuLaunchKernelEx(config, loaded.function, pointers, extra)
        return status

    return call


def _parameters(driver: Driver, function: Any) -> tuple[int, ...] | None:
    """Return the sizes of a kernel's parameters in bytes; `None` with drivers or bindings before CUDA 12.4."""
    query = getattr(driver.module, "cuFuncGetParamInfo", None)
    if query is None or driver.version < (12, 4):
        return None
    sizes: list[int] = []
    while True:
        status, *found = query(function, len(sizes))
        if int(status):
            return tuple(sizes)
        sizes.append(int(found[1]))


def _unload(driver: Driver, context: Any, module: Any) -> None:
    if context in driver.occupied:
        return
    # The thread that drops the last reference must keep its current context.
    try:
        with preserved_context(driver):
            driver("cuCtxSetCurrent", context)
            driver("cuModuleUnload", module)
    except (DeviceError, KernelFaultError):
        # After a kernel's fault the context is gone, and the module with it.
        return
