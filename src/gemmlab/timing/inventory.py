"""An inventory of this machine for `gemmlab doctor`: processor, peaks, BLAS libraries, GPU, compilers, cache."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from importlib import metadata
from typing import Any

from gemmlab.core.errors import GemmlabError
from gemmlab.core.hardware import cpu_info, physical_cores
from gemmlab.toolchain.cache import cache_dir
from gemmlab.toolchain.cache_bound import limit as cache_limit
from gemmlab.toolchain.cache_bound import size as cache_size

COMPILERS = (
    "llvmlite", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvdisasm", "cuda-bindings", "cuda-core",
)  # fmt: skip
PACKAGES = (
    "numpy", "llvmlite", "typer", "rich", "altair", "vl-convert-python", "platformdirs", "threadpoolctl",
    "scipy-openblas32", "onednn-cpu-gomp", "mkl",
)  # fmt: skip
SLOWING_VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
_COMPUTE_CAPABILITY = (75, 76)


def processor(*, measure: bool = True, seconds: float = 0.3) -> dict[str, Any]:
    """Return the facts of `cpu_info()` with the computed peak, and if `measure` the measured peaks of one thread and of
    all cores and the speed of the register tile, in GFLOP/s.

    Each measurement lasts `seconds`. If measuring fails, `measured_peak_error` says why.
    """
    info = cpu_info()
    cores = physical_cores()
    facts = info.to_json() | {"physical_cores": cores, "clock_ghz": info.clock_ghz}
    facts["computed_peak_gflops"] = info.peak_gflops
    facts["measured_peak_gflops"] = {}
    facts["register_tile"] = None
    if measure:
        try:
            from gemmlab.devices.cpu import CpuDevice

            device = CpuDevice()
            for threads in sorted({1, cores}):
                facts["measured_peak_gflops"][str(threads)] = device.measure_peak(threads, seconds)
            gflops, share = device.measure_tile(seconds)
            facts["register_tile"] = {"gflops": gflops, "share_of_peak": share}
        except (ImportError, GemmlabError) as error:
            facts["measured_peak_error"] = str(error)
    return facts


def blas_libraries() -> tuple[list[dict[str, Any]], list[str]]:
    """Return library, version, core type and thread runtime of each BLAS found, and a list of warnings.

    NumPy's BLAS has two entries. The first is inspected in this process, whose environment a program started from here
    inherits. The second is inspected as a bench runs it, in a process without the variables that change a BLAS, and so
    are the other installed libraries that a bench compares with. Warnings name such variables that are set here, and
    libraries that did not start.
    """
    warnings = [
        f"{name}={os.environ[name]} is set: it can halve the speed of NumPy and OpenBLAS"
        for name in SLOWING_VARIABLES
        if name in os.environ
    ]
    found = [{"name": "numpy (this process)", **_numpy_here()}]
    try:
        from gemmlab.ops.gemm import GemmOp
        from gemmlab.timing.arena import Arena
        from gemmlab.timing.families import Timing
        from gemmlab.timing.peers import installed_peers, parse_contestant
        from gemmlab.timing.turns import Crew

        op = GemmOp()
        problems = op.parse_sizes("64")
        names = [name.removesuffix(":best") for name in installed_peers()]
        with Arena(op, problems, seed=0) as arena, Crew(op, problems, arena, 1, Timing(timeout_s=60.0)) as crew:
            for spec in map(parse_contestant, names):
                if crew.join(spec) and crew.prepare(spec.name, 0):
                    found.append({"name": spec.name, **crew.facts[spec.name]})
            warnings += crew.lost.values()
    except GemmlabError as error:
        warnings.append(str(error))
    return found, warnings


def _numpy_here() -> dict[str, Any]:
    import numpy as np
    from threadpoolctl import threadpool_info

    pool: dict[str, Any] = next((pool for pool in threadpool_info() if pool["user_api"] == "blas"), {})
    return {
        "library": f"NumPy on {pool.get('internal_api', 'an unknown BLAS')}",
        "version": f"{np.__version__} on {pool.get('version') or 'unknown'}",
        "core_type": pool.get("architecture", "unknown"),
        "thread_runtime": pool.get("threading_layer", "unknown"),
        "threads": pool.get("num_threads"),
    }


def gpus() -> dict[str, Any]:
    """Return `driver_cuda` (the newest CUDA version that the driver supports) and `devices`, from the driver library.

    If there is no driver or it does not start, `reason` says so.
    """
    library = next((lib for lib in map(_load, ("libcuda.so.1", "nvcuda.dll")) if lib), None)
    if library is None:
        return {"driver_cuda": None, "devices": [], "reason": "no CUDA driver library"}
    status = library.cuInit(0)
    version, count = ctypes.c_int(), ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    driver = f"{version.value // 1000}.{version.value % 1000 // 10}"
    if status or library.cuDeviceGetCount(ctypes.byref(count)):
        return {"driver_cuda": driver, "devices": [], "reason": f"the driver does not start (error {status})"}
    return {"driver_cuda": driver, "devices": [_gpu(library, ordinal) for ordinal in range(count.value)]}


def _gpu(library: ctypes.CDLL, ordinal: int) -> dict[str, Any]:
    handle, value, nbytes = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    library.cuDeviceGet(ctypes.byref(handle), ordinal)
    name = ctypes.create_string_buffer(256)
    library.cuDeviceGetName(name, len(name), handle)
    capability = []
    for attribute in _COMPUTE_CAPABILITY:
        library.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle)
        capability.append(str(value.value))
    library.cuDeviceTotalMem_v2(ctypes.byref(nbytes), handle)
    return {"name": name.value.decode(), "compute_capability": ".".join(capability), "memory_bytes": nbytes.value}


def _load(name: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def compilers() -> dict[str, str | None]:
    """Return the version of each compiler package, `None` without it; with llvmlite also LLVM's (`llvm`)."""
    found = {name: package_version(name) for name in COMPILERS}
    if found["llvmlite"]:
        from llvmlite import binding

        found["llvm"] = ".".join(map(str, binding.llvm_version_info))
    return found


def cuda_compiler() -> dict[str, Any]:
    """Return the CUDA compiler's name, architectures and disassembler, up to the first that is missing.

    `reason` says why it is missing; it is empty if nothing is.
    """
    from gemmlab.toolchain import nvdisasm, nvrtc

    facts: dict[str, Any] = {"compiler": None, "architectures": [], "disassembler": None, "reason": ""}
    try:
        facts["compiler"] = nvrtc.compiler()
        facts["architectures"] = [f"sm_{number}" for number in nvrtc.architectures()]
        facts["disassembler"] = str(nvdisasm.tool())
    except GemmlabError as error:
        facts["reason"] = str(error)
    return facts


def shipped_code() -> dict[str, int]:
    """Return GPU architecture -> number of kernel instances whose machine code came with the package."""
    from gemmlab.toolchain.shipped_code import targets

    return targets()


def gpu_code() -> dict[str, dict[str, Any]]:
    """Return a summary of the package's archive of machine code for GPUs (`code_archive.contents`), by architecture;
    empty if the environment requests compilation (`GEMMLAB_COMPILE=1`).
    """
    from gemmlab.toolchain import code_archive

    return {} if os.environ.get(code_archive.SWITCH) == "1" else code_archive.contents()


def package_version(name: str) -> str | None:
    """Return the version of an installed distribution, `None` if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str | None]:
    """Return the versions of gemmlab, Python, the operating system and `PACKAGES` (`None` if not installed)."""
    from gemmlab.core.version import __version__

    system = f"{platform.system()} {platform.release()}"
    own = {"gemmlab": __version__, "python": sys.version.split()[0], "system": system}
    return own | {name: package_version(name) for name in PACKAGES}


def cache_folder() -> dict[str, Any]:
    """Return path, existence, writability, size in bytes and limit in bytes (`None` without one) of the cache of
    compiled code. The path is empty if there is no cache.
    """
    path = cache_dir()
    if path is None:
        return {"path": "", "exists": False, "writable": False, "bytes": 0, "limit_bytes": cache_limit()}
    nearest = next(folder for folder in (path, *path.parents) if folder.exists())
    writable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    return {
        "path": str(path), "exists": path.is_dir(), "writable": writable, "bytes": cache_size(path),
        "limit_bytes": cache_limit(),
    }  # fmt: skip
