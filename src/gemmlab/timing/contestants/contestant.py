"""What can be timed, as it lives inside its worker process: prepared once a problem, then timed in turns."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import GemmlabError
from gemmlab.timing.arena import Float32Array

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
    cold: bool = False
    """Whether a timed call is to find its operands in none of this machine's caches."""
    uploaded: dict[str, Any] = field(default_factory=dict)
    """Buffers by operand, where contestants of one process share a device with memory of its own."""

    @property
    def before(self) -> Callable[[], None] | None:
        """What comes before each timed call, untimed."""
        return self._flush if self.cold else None

    def _flush(self) -> None:
        from gemmlab.codegen.flush import flush

        for array in self.flat.values():
            flush(_address(array), array.nbytes)

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
    clock_mhz: float | None = None
    memory_mhz: float | None = None
    throttle: tuple[str, ...] = ()


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
    before: Callable[[], None] | None = None
    """Untimed, before each timed call; such calls are timed one by one."""

    @classmethod
    def of(cls, call: Callable[[], object], before: Callable[[], None] | None = None) -> Calls:
        """Times `call` with `time_calls`."""
        return cls(call, partial(time_calls, call), before)

    def run(self) -> None:
        self.call()

    def turn(self, *, min_us: float, warm_us: float, inner_us: float, raw_limit: int) -> Turn:
        """Without a warm-up, one call that lasts the whole turn is the turn."""
        started = time.perf_counter_ns()
        warm = self.timer(1, 1)
        if not warm_us and warm[0] >= min_us:
            return Turn(warm[0], 1, 1, warm)
        passed_us = cost_us = (time.perf_counter_ns() - started) / 1e3
        while sum(warm) < warm_us and passed_us < warm_us and len(warm) < MAX_CALLS:
            warm += self.timer(len(warm), 1)
            # What a call costs in all: a timer may have more to do than to call.
            before_us, passed_us = passed_us, (time.perf_counter_ns() - started) / 1e3
            cost_us = min(cost_us, 2 * (passed_us - before_us) / len(warm))
        estimate = max(1e-3, min(warm[-len(warm) // 2 :]))
        inner = 1 if estimate >= inner_us or self.before is not None else min(MAX_CALLS, math.ceil(inner_us / estimate))
        lasts_us = max(estimate, cost_us) if inner == 1 else estimate * inner
        calls = max(1, min(MAX_CALLS, math.ceil(min_us / lasts_us)))
        times = self.timer(calls, inner) if self.before is None else self._one_by_one(calls, self.before)
        kept = times[:: math.ceil(len(times) / raw_limit)]
        return Turn(statistics.median(times), calls, inner, kept)

    def _one_by_one(self, calls: int, before: Callable[[], None]) -> list[float]:
        times: list[float] = []
        for _ in repeat(None, calls):
            before()
            times += self.timer(1, 1)
        return times


def call_for(library: str, op: str, calls: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """What a library has for an operation; `UnsupportedError` where that is nothing."""
    if op not in calls:
        raise UnsupportedError(f"{library} has no {op}")
    return calls[op]


class LibraryCall:
    """`gemmlab.gemm` or `gemmlab.sum` as a user calls it, argument handling included."""

    def prepare(self, work: Work) -> Prepared:
        calls = {"gemm": self._product, "reduce": self._sum}
        return Calls.of(call_for("gemmlab", work.op, calls)(work), work.before)

    @staticmethod
    def _sum(work: Work) -> Callable[[], object]:
        import gemmlab

        if work.problem["operator"] != "sum":
            raise UnsupportedError("gemmlab.sum adds")
        x, out = work.flat["x"], work.flat["out"]

        def call() -> None:
            out[0] = gemmlab.sum(x, threads=work.threads)

        return call

    @staticmethod
    def _product(work: Work) -> Callable[[], object]:
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
        return partial(gemm, a, b, **options)

    def facts(self) -> dict[str, Any]:
        import gemmlab

        return {"library": "gemmlab", "version": gemmlab.__version__, "thread_runtime": "own workers"}


class NumpyCall:
    """`numpy.matmul(a, b, out=c)`; `numpy.sum(x, out=out)`, `numpy.max` or `numpy.min`."""

    def prepare(self, work: Work) -> Prepared:
        calls = {"gemm": self._product, "reduce": self._reduction}
        return Calls.of(call_for("numpy", work.op, calls)(work), work.before)

    @staticmethod
    def _product(work: Work) -> Callable[[], object]:
        if not work.plain:
            raise UnsupportedError("numpy.matmul has no alpha and beta")
        return partial(np.matmul, work.operand("a"), work.operand("b"), out=work.matrices["c"])

    @staticmethod
    def _reduction(work: Work) -> Callable[[], object]:
        if work.threads > 1:
            raise UnsupportedError("numpy adds on one thread")
        reduce: Callable[..., object] = getattr(np, str(work.problem["operator"]))
        return partial(reduce, work.flat["x"], out=work.matrices["out"].reshape(()))

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
        from gemmlab.timing.contestants.cblas import BlasLibrary

        self._library = BlasLibrary(path)

    def prepare(self, work: Work) -> Prepared:
        call_for("a BLAS", work.op, {"gemm": self._library.prepare})
        limit = 2**31 - 1
        if any(work.scalars[name] > limit for name in ("m", "n", "k", "lda", "ldb", "ldc")):
            raise UnsupportedError(f"an extent is above {limit}")
        addresses = {name: _address(array) for name, array in work.flat.items()}
        return Calls.of(self._library.prepare(work.scalars, addresses), work.before)

    def facts(self) -> dict[str, Any]:
        return self._library.facts()


def make_contestant(spec: Mapping[str, Any]) -> Contestant:
    """The contestant that `gemmlab.timing.peers.Spec.to_json` describes."""
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


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
