"""What can be timed, as it lives inside its worker process: prepared once a problem, then timed in turns."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import GemmlabError
from gemmlab.measure.arena import Float32Array

MAX_CALLS = 20_000


class UnsupportedError(GemmlabError):
    """The contestant cannot do this problem; the message says why."""


@dataclass(frozen=True, slots=True)
class Work:
    """One problem with its operands in this process."""

    op: str
    problem: Mapping[str, Any]
    flops: int
    scalars: Mapping[str, Any]
    flat: Mapping[str, Float32Array]
    matrices: Mapping[str, Float32Array]
    threads: int

    @property
    def plain(self) -> bool:
        """Whether it is C = op(A) op(B) alone."""
        return bool(self.scalars["alpha"] == 1 and self.scalars["beta"] == 0)

    def operand(self, name: str) -> Float32Array:
        """A or B as the product reads it, transposed where the problem says so."""
        matrix = self.matrices[name]
        return matrix.T if self.scalars.get(f"trans_{name}", 0) else matrix


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn measured; times in microseconds."""

    time_us: float
    calls: int
    inner: int
    raw_us: list[float]


class Prepared(Protocol):
    """A contestant ready for one problem."""

    def run(self) -> None:
        """Execute once."""

    def turn(self, *, min_us: float, warm_us: float, inner_us: float, raw_limit: int) -> Turn:
        """Warm up, then time calls for at least `min_us`."""


class Contestant(Protocol):
    """Something that computes the operation."""

    def prepare(self, work: Work) -> Prepared:
        """Raises `UnsupportedError` where it cannot do the problem."""

    def facts(self) -> dict[str, Any]:
        """Library, version, core type, thread runtime, threads. Complete after a first run."""


def time_calls(call: Callable[[], object], calls: int, inner: int) -> list[float]:
    """`calls` times of one call in microseconds, each the mean over `inner` calls in a row."""
    clock = time.perf_counter_ns
    times = [0] * calls
    if inner == 1:
        for index in range(calls):
            start = clock()
            call()
            times[index] = clock() - start
    else:
        for index in range(calls):
            start = clock()
            for _ in repeat(None, inner):
                call()
            times[index] = clock() - start
    return [value / inner / 1e3 for value in times]


@dataclass(frozen=True, slots=True)
class Calls:
    """A prepared contestant that is a callable, or anything that times calls the way `time_calls` does."""

    call: Callable[[], object]
    timer: Callable[[int, int], list[float]]

    @classmethod
    def of(cls, call: Callable[[], object]) -> Calls:
        """Times `call` with `time_calls`."""
        return cls(call, partial(time_calls, call))

    def run(self) -> None:
        self.call()

    def turn(self, *, min_us: float, warm_us: float, inner_us: float, raw_limit: int) -> Turn:
        warm = self.timer(1, 1)
        while sum(warm) < warm_us and len(warm) < MAX_CALLS:
            warm += self.timer(len(warm), 1)
        estimate = max(1e-3, min(warm[-len(warm) // 2 :]))
        inner = 1 if estimate >= inner_us else min(MAX_CALLS, math.ceil(inner_us / estimate))
        calls = max(1, min(MAX_CALLS, math.ceil(min_us / (estimate * inner))))
        times = self.timer(calls, inner)
        kept = times[:: math.ceil(len(times) / raw_limit)]
        return Turn(statistics.median(times), calls, inner, kept)


class LibraryCall:
    """`gemmlab.gemm` as a user calls it, argument handling included."""

    def prepare(self, work: Work) -> Prepared:
        import gemmlab

        gemm: Callable[..., object] = gemmlab.gemm
        a, b, c = (work.matrices[name] for name in ("a", "b", "c"))
        options: dict[str, Any] = {"out": c, "threads": work.threads}
        for name in ("trans_a", "trans_b"):
            if work.scalars.get(name, 0):
                options[name] = True
        if not work.plain:
            options |= {"alpha": work.scalars["alpha"], "beta": work.scalars["beta"]}
        if work.scalars["beta"] != 0:
            options["c"] = c
        return Calls.of(partial(gemm, a, b, **options))

    def facts(self) -> dict[str, Any]:
        import gemmlab

        return {"library": "gemmlab", "version": gemmlab.__version__, "thread_runtime": "own workers"}


class KernelCall:
    """One kernel of the catalog, timed by its device."""

    def __init__(self, kernel: str, config: Mapping[str, int]) -> None:
        from gemmlab.devices.cpu import CpuDevice
        from gemmlab.kernels.catalog import find_kernel

        self._kernel, self._config, self._device = find_kernel(kernel), dict(config), CpuDevice()
        self._facts: dict[str, Any] = {}

    def prepare(self, work: Work) -> Prepared:
        from gemmlab.measure.run import bind
        from gemmlab.ops.catalog import find_op

        layout = "".join("t" if work.scalars.get(f"trans_{name}", 0) else "n" for name in "ab")
        if layout not in self._kernel.layouts:
            raise UnsupportedError(f"{self._kernel.id} reads layouts {', '.join(self._kernel.layouts)}, not {layout}")
        if work.threads > 1 and not self._kernel.threaded:
            raise UnsupportedError(f"{self._kernel.id} runs on one thread")
        op = find_op(work.op)
        problem = op.problem_from_json(work.problem)
        bound = bind(
            self._kernel, self._device, op, problem, work.flat, config=self._config or None, threads=work.threads
        )
        artifact = bound.loaded.artifact
        self._facts = {"target": artifact.target, "compiler": artifact.compiler, "code_sha256": artifact.digest}

        def timer(calls: int, inner: int) -> list[float]:
            times = bound.time(calls * inner)
            return [sum(times[first : first + inner]) / inner for first in range(0, calls * inner, inner)]

        return Calls(bound.run, timer)

    def facts(self) -> dict[str, Any]:
        import gemmlab

        return {
            "library": "gemmlab", "version": gemmlab.__version__, "thread_runtime": "own workers",
            "config": self._kernel.configure(self._config), **self._facts,
        }  # fmt: skip


class NumpyCall:
    """`numpy.matmul(a, b, out=c)`."""

    def prepare(self, work: Work) -> Prepared:
        if not work.plain:
            raise UnsupportedError("numpy.matmul has no alpha and beta")
        return Calls.of(partial(np.matmul, work.operand("a"), work.operand("b"), out=work.matrices["c"]))

    def facts(self) -> dict[str, Any]:
        from threadpoolctl import threadpool_info

        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        blas = pools[0] if pools else {}
        return {
            "library": f"NumPy on {blas.get('internal_api', 'an unknown BLAS')}",
            "version": f"{np.__version__} on {blas.get('version', 'unknown')}",
            "core_type": blas.get("architecture", "unknown"),
            "thread_runtime": blas.get("threading_layer", "unknown"),
            "threads": blas.get("num_threads"),
        }


class BlasCall:
    """A BLAS library's own entry, called with arguments that were converted beforehand."""

    def __init__(self, path: str) -> None:
        from gemmlab.measure.cblas import BlasLibrary

        self._library = BlasLibrary(path)

    def prepare(self, work: Work) -> Prepared:
        limit = 2**31 - 1
        if any(work.scalars[name] > limit for name in ("m", "n", "k", "lda", "ldb", "ldc")):
            raise UnsupportedError(f"an extent is above {limit}")
        addresses = {name: _address(array) for name, array in work.flat.items()}
        return Calls.of(self._library.prepare(work.scalars, addresses))

    def facts(self) -> dict[str, Any]:
        return self._library.facts()


@dataclass(frozen=True, slots=True)
class PeakTurn:
    """The FMA probe dressed as a contestant: its time is what the problem would take at the probed rate."""

    measure: Callable[[int, float], float]
    threads: int
    flops: int

    def run(self) -> None:
        self.measure(self.threads, 1e-3)

    def turn(self, *, min_us: float, warm_us: float, inner_us: float, raw_limit: int) -> Turn:  # noqa: ARG002
        time_us = self.flops / (self.measure(self.threads, min_us / 1e6) * 1e3)
        return Turn(time_us, 1, 1, [time_us])


class PeakProbe:
    """Measures the FMA peak of the threads in use."""

    def __init__(self) -> None:
        from gemmlab.devices.cpu import CpuDevice

        self._device = CpuDevice()

    def prepare(self, work: Work) -> Prepared:
        return PeakTurn(self._device.measure_peak, work.threads, work.flops)

    def facts(self) -> dict[str, Any]:
        return {"library": "gemmlab", "core_type": "FMA peak of the widest vector"}


def make_contestant(spec: Mapping[str, Any]) -> Contestant:
    """The contestant that `gemmlab.measure.peers.Spec.to_json` describes."""
    kind = spec["kind"]
    if kind == "gemmlab":
        return LibraryCall()
    if kind == "kernel":
        return KernelCall(spec["kernel"], spec["config"])
    if kind == "numpy":
        return NumpyCall()
    return PeakProbe() if kind == "probe" else BlasCall(spec["path"])


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
