"""Time many kernels and configurations at many products in one process: for `sweep_kernels.py` and `regret.py`.

All problems share two buffers of random numbers for A and B and one for C, so that a kernel costs little more than its
runs. Caches are cold, as in `gemmlab bench`. Some elements of each result are compared with float64.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.precision import FLOAT32, TF32_ROUNDOFF, UNIT_ROUNDOFF
from gemmlab.core.precision import PARTS as PARTS_OF_FLOATS
from gemmlab.devices.device import Buffer, Device, Loaded, Window
from gemmlab.devices.device_name import parse_device
from gemmlab.devices.select import open_device
from gemmlab.dispatch.waves import PARTS, Gpu, gpu_model, gpu_of_facts
from gemmlab.kernels.bound import BoundKernel, PlacedKernel
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.batch_problem import BatchProblem
from gemmlab.ops.footprint import require_memory
from gemmlab.ops.gemm import PART_ROUNDINGS, ROUNDINGS, GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.ops.op import Op

OP = GemmOp()
ALPHAS = (1.0, 2.0, 0.5, 4.0, 0.25)
"""Values of alpha that checks use in turn, so that an earlier kernel's result, which is still in C, is not right."""
ROWS, COLUMNS = 4, 32
"""The most rows of a result that are compared, and the most elements at each end of such a row."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A kernel in one configuration."""

    kernel: str
    config: Mapping[str, int]
    condition: str = ""
    """An expression over extents and parameters, true for the products that the trial is for; empty for all."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Kernel and parameters, equal for trials that differ only in `condition`."""
        return self.kernel, *sorted(self.config.items())

    @property
    def without_parts(self) -> tuple[Any, ...]:
        """`key` without the number of parts of k: equal for the trials of one entry of the table of choices."""
        return _without_parts(self.key)

    def of_today(self) -> Trial:
        """Return the trial with today's name of the kernel, and defaults for parameters that are newer.

        Raises `UsageError` if the kernel or a value of a parameter no longer exists.
        """
        kernel = find_kernel(self.kernel)
        return replace(self, kernel=kernel.id, config=kernel.configure(self.config))


@dataclass(frozen=True, slots=True)
class Placed(PlacedKernel):
    """A kernel whose workspace is memory that all trials share, one after the other. A kernel that needs zeros in its
    workspace gets one of its own.
    """

    scratch: list[Buffer] = field(default_factory=list)

    def _workspace(self, nbytes: int) -> Buffer:
        if self.kernel.zeroed_workspace:
            return PlacedKernel._workspace(self, nbytes)  # noqa: SLF001 - super() finds no class with slots
        if not self.scratch or self.scratch[0].nbytes < nbytes:
            self.scratch[:] = [self.device.allocate(nbytes)]
        return self.scratch[0]


@dataclass(frozen=True, slots=True)
class Spots:
    """Elements of a result to compare: rows of C, `columns` elements at both ends of each, their float64 values for
    alpha 1, and the sums of their terms' magnitudes.
    """

    rows: tuple[int, ...]
    columns: int
    values: npt.NDArray[np.float64]
    magnitudes: npt.NDArray[np.float64]


class _Loaded(dict[tuple[tuple[str, int], ...], Loaded]):
    """Loaded code by compile-time parameters. The number of parts of k is no part of a key, because only the launch
    depends on it.
    """

    def __contains__(self, key: object) -> bool:
        return super().__contains__(_without_parts(key))

    def __getitem__(self, key: tuple[tuple[str, int], ...]) -> Loaded:
        return super().__getitem__(_without_parts(key))

    def __setitem__(self, key: tuple[tuple[str, int], ...], value: Loaded) -> None:
        super().__setitem__(_without_parts(key), value)


def _without_parts(key: Any) -> tuple[Any, ...]:
    return tuple(pair for pair in key if pair[0] != PARTS)


class QuickTimes:
    """Times and checks of trials on a device at `problems`, products or batches. The operands of all of them begin at
    the same addresses.
    """

    def __init__(self, device: Device, problems: Sequence[GemmProblem], seed: int = 0, op: Op = OP) -> None:
        self.device, self.op = device, op
        sizes = [{one.name: one.rows * one.ld for one in op.operands(problem)} for problem in problems]
        words = {name: max(size[name] for size in sizes) for name in "abc"}
        require_memory(4 * (words["a"] + words["b"]), "the operands of all problems")
        rng = np.random.default_rng(seed)
        self._host = {name: rng.random(words[name], np.float32) * np.float32(2) - np.float32(1) for name in "ab"}
        self._buffers = {
            **{name: device.upload(x) for name, x in self._host.items()},
            "c": device.allocate(4 * words["c"]),
        }
        self._placed: dict[tuple[Any, ...], Placed] = {}
        self._loaded: dict[tuple[Any, ...], _Loaded] = {}
        self._scratch: list[Buffer] = []
        self._alphas = itertools.cycle(ALPHAS)
        self._spots: tuple[GemmProblem, Spots] | None = None

    def bound(self, problem: GemmProblem, trial: Trial) -> BoundKernel:
        """Return a trial ready to run at a problem. Raises `UsageError`, `CompileError` and `MemoryError`."""
        placed = self._placed.get(trial.key)
        if placed is None:
            kernel = find_kernel(trial.kernel)
            code = tuple(pair for pair in trial.key if pair[0] != PARTS)
            loaded = self._loaded.setdefault(code, _Loaded())
            placed = Placed(kernel, self.device, kernel.configure(trial.config), loaded, self._scratch)
            self._placed[trial.key] = placed
        return placed.bind(self.op, problem, self._buffers)

    def right(self, problem: GemmProblem, trial: Trial) -> bool:
        """Run a trial and return whether some elements of the result, the last one among them, are within their error
        bounds. In a batch they are elements of the last product.
        """
        scaled = replace(problem, alpha=next(self._alphas))
        kernel = find_kernel(trial.kernel)
        if kernel.refusal(kernel.configure(trial.config), self.op.scalars(scaled)):
            scaled = problem  # a kernel without alpha
        self.bound(scaled, trial).run()
        spots = self._spots_of(problem)
        found = np.array([self._row(problem, row, spots.columns) for row in spots.rows])
        steps = (problem.k + ROUNDINGS) * UNIT_ROUNDOFF
        if kernel.precision in PARTS_OF_FLOATS:
            steps += PART_ROUNDINGS * UNIT_ROUNDOFF
        elif kernel.precision != FLOAT32:
            steps = 2 * steps + 3 * TF32_ROUNDOFF
        bound = abs(scaled.alpha) * steps * spots.magnitudes
        return bool(np.all(np.abs(found - scaled.alpha * spots.values) <= bound))

    def _row(self, problem: GemmProblem, row: int, columns: int) -> npt.NDArray[np.float32]:
        """Return the first and the last `columns` elements of a row of C, in a batch of the last product's C."""
        start, n = _last(problem, "c") + row * problem.ldc, problem.n
        return np.concatenate([self._words_of_c(start, columns), self._words_of_c(start + n - columns, columns)])

    def _words_of_c(self, first: int, count: int) -> npt.NDArray[np.float32]:
        buffer = self._buffers["c"]
        if self.device.family == "cuda":
            out = np.empty(count, np.float32)
            self.device.download(Window(buffer, 4 * first, 4 * count), out)
            return out
        everything = np.empty(buffer.nbytes // 4, np.float32)
        self.device.download(buffer, everything)
        return everything[first : first + count]

    def _spots_of(self, problem: GemmProblem) -> Spots:
        if self._spots is None or self._spots[0] != problem:
            p = problem
            columns = min(COLUMNS, p.n)
            rows = tuple(sorted({int(at * (p.m - 1) / (ROWS - 1)) for at in range(ROWS)}))
            left, right = (self._host[name][_last(p, name) :] for name in "ab")
            a = _matrix(left, p.m, p.k, p.lda, turned=p.trans_a)[list(rows)].astype(np.float64)
            b = _matrix(right, p.k, p.n, p.ldb, turned=p.trans_b)
            ends = np.concatenate([b[:, :columns], b[:, p.n - columns :]], axis=1).astype(np.float64)
            self._spots = p, Spots(rows, columns, a @ ends, np.abs(a) @ np.abs(ends))
        return self._spots[1]


def cold_device(name: str) -> Device:
    """Open a device that empties its caches before each run. An emulated one has none, and its times mean nothing.

    Raises `DeviceError`.
    """
    return open_device(name, None if parse_device(name).family == "emulated" else "cold")


def gpu_of(device: Device) -> Gpu:
    """Return the model of a device, as the choice takes it."""
    info = device.describe()
    if device.family == "emulated":
        from gemmlab.devices.emulated import MODELS

        return gpu_model(MODELS[device.id.partition(":")[2]])
    return gpu_of_facts(info.name, info.facts)


def say(text: str) -> None:
    """Print one line of progress over the one before."""
    print(f"{text:100.100}", end="\r", file=sys.stderr)


def instances(
    problems: Iterable[GemmProblem], trials: Sequence[Trial], op: Op = OP
) -> Iterator[tuple[Kernel, dict[str, int]]]:  # fmt: skip
    """Yield the kernel and compile-time parameters that each trial needs at each problem that it takes, for
    `timing.prebuild`.
    """
    for problem in problems:
        scalars = op.scalars(problem)
        for trial in trials:
            kernel = find_kernel(trial.kernel)
            config = kernel.configure(trial.config)
            if not kernel.refusal(config, scalars) and problem.layout in kernel.layouts:
                yield kernel, kernel.instantiate(config, scalars)


def code_facts(bound: BoundKernel) -> dict[str, int]:
    """Return, for a kernel's last launch, the registers of a thread, bytes of shared memory and threads of a block, and
    the number of blocks; and the number of launches.
    """
    resources, launch = bound.loaded.artifact.resources, bound.launches[-1]
    return {
        "registers": int(resources.get("registers", 0)),
        "smem": int(resources.get("static_smem_bytes", 0)) + launch.smem_bytes,
        "threads": math.prod(launch.threads), "blocks": math.prod(launch.grid), "launches": len(bound.launches),
    }  # fmt: skip


def _last(problem: GemmProblem, name: str) -> int:
    """Return the offset of the last matrix of an operand in elements: 0 if there is only one."""
    return (problem.batch - 1) * problem.step(name) if isinstance(problem, BatchProblem) else 0


def _matrix(words: npt.NDArray[np.float32], rows: int, cols: int, ld: int, *, turned: bool) -> npt.NDArray[np.float32]:
    strides = (4, 4 * ld) if turned else (4 * ld, 4)
    return np.lib.stride_tricks.as_strided(words, (rows, cols), strides)
