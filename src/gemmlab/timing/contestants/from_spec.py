"""Build a contestant from the description that a worker process receives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gemmlab.core.precision import FLOAT32
from gemmlab.devices.device_name import parse_device
from gemmlab.timing.contestants.contestant import Contestant
from gemmlab.timing.contestants.cpu_library import BlasCall, LibraryCall, NumpyCall
from gemmlab.timing.families import family_of


def make_contestant(spec: Mapping[str, Any]) -> Contestant:
    """Return the contestant that `spec`, the result of `gemmlab.timing.peers.Spec.to_json`, describes."""
    kind, where = spec["kind"], (spec.get("device", "cpu"), spec.get("mode", "warm"))
    if kind == "gemmlab" and family_of(parse_device(where[0]).family).host_threads:
        options = {name: bool(spec.get(name, False)) for name in ("reproducible", "packed")}
        return LibraryCall(spec.get("precision", FLOAT32), **options)
    if kind == "numpy":
        return NumpyCall()
    if kind in ("kernel", "probe"):
        from gemmlab.timing.contestants.on_device import KernelCall, PeakProbe

        if kind == "probe":
            return PeakProbe(*where)
        return KernelCall(spec["kernel"], spec["config"], *where, spec.get("flags"))
    if kind in ("gemmlab", "cublas", "cublaslt", "torch", "cupy", "cub"):
        from gemmlab.timing.contestants.gpu_library import make_gpu_contestant

        same = bool(spec.get("reproducible", False))
        return make_gpu_contestant(kind, spec.get("path"), *where, spec.get("precision", FLOAT32), reproducible=same)
    return BlasCall(spec["path"])
