"""The environment and the CPUs of a contestant's worker process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gemmlab.core.cpu_facts import parse_cpu_list
from gemmlab.core.environment import THREAD_VARIABLES
from gemmlab.core.hardware import require_cpus
from gemmlab.core.precision import AS_FLOAT32
from gemmlab.timing.peers import Spec


def worker_environment(spec: Spec, threads: int, base: Mapping[str, str]) -> dict[str, str]:
    """Return the environment `base` without variables that change a BLAS, with the thread count and `spec`'s core type.

    If `spec.precision` is one of `AS_FLOAT32`, the environment forbids CUDA libraries to round inputs to TF32.
    """
    environment = {name: value for name, value in base.items() if not name.startswith(THREAD_VARIABLES)}
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
                 "BLIS_NUM_THREADS"):  # fmt: skip
        environment[name] = str(threads)
    environment |= {"OMP_DYNAMIC": "FALSE", "MKL_DYNAMIC": "FALSE"}
    if spec.kind == "mkl":
        environment |= {"MKL_INTERFACE_LAYER": "LP64", "MKL_THREADING_LAYER": "INTEL"}
    if spec.core_type:
        environment["OPENBLAS_CORETYPE"] = spec.core_type
    # In float32 no library may round its inputs to TF32 for speed; only a `:tf32` contestant may.
    environment.pop("NVIDIA_TF32_OVERRIDE", None)
    if spec.precision in AS_FLOAT32:
        environment["NVIDIA_TF32_OVERRIDE"] = "0"
    return environment


def worker_cpus(threads: int) -> list[int]:
    """Return the `threads` CPUs to which every contestant is pinned: one per core first, then second hardware threads.

    Empty if the system cannot pin processes. Raises `UsageError` for more threads than CPUs.
    """
    require_cpus(threads)
    affinity = getattr(os, "sched_getaffinity", None)
    if affinity is None:
        return []
    first: list[int] = []
    second: list[int] = []
    cores: set[int] = set()
    for cpu in sorted(affinity(0)):
        (second if cpu in cores else first).append(cpu)
        cores |= _siblings(cpu)
    return (first + second)[:threads]


def _siblings(cpu: int) -> frozenset[int]:
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text(encoding="ascii")
    except OSError:
        return frozenset((cpu,))
    return parse_cpu_list(text) | {cpu}
