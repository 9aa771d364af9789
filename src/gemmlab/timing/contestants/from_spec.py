"""Build a contestant from the description that a worker process receives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gemmlab.timing.contestants.contestant import Contestant
from gemmlab.timing.contestants.cpu_library import BlasCall, LibraryCall, NumpyCall


def make_contestant(spec: Mapping[str, Any]) -> Contestant:
    """Return the contestant that a `gemmlab.timing.peers.Spec.to_json` describes."""
    kind, where = spec["kind"], (spec.get("device", "cpu"), spec.get("mode", "warm"))
    if kind == "gemmlab":
        return LibraryCall()
    if kind == "numpy":
        return NumpyCall()
    if kind in ("kernel", "probe"):
        from gemmlab.timing.contestants.on_device import KernelCall, PeakProbe

        if kind == "probe":
            return PeakProbe(*where)
        return KernelCall(spec["kernel"], spec["config"], *where, spec.get("flags"))
    if kind in ("cublas", "torch", "cupy", "cub"):
        from gemmlab.timing.contestants.gpu_library import make_gpu_contestant

        return make_gpu_contestant(kind, spec["path"], *where, spec["precision"])
    return BlasCall(spec["path"])
