"""What a kernel's loads and stores do to caches: simulated from the addresses it really uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np

from gemmlab.codegen.cachesim import BANK, COUNTERS, LINE, WORKSPACE, WORKSPACE_END, CacheProbe, Caches, Level
from gemmlab.codegen.stopwatch import PackingClock
from gemmlab.core.errors import UsageError
from gemmlab.core.hardware import CpuInfo
from gemmlab.devices.probed_cpu import ProbedCpu
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure.run import BoundKernel, bind
from gemmlab.ops.op import Op, Problem


@dataclass(frozen=True, slots=True)
class Counts:
    """Loads and stores of matrices and packed blocks, and the lines (pages) that had to be fetched for them."""

    accesses: int
    bytes: int
    l1_misses: int
    l2_misses: int
    tlb_misses: int
    l1_written_back: int
    """Changed lines that L1 dropped into L2."""
    l2_written_back: int
    """Changed lines that L2 dropped into memory."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    @property
    def l2_bytes(self) -> int:
        """Bytes moved between L1 and L2."""
        return LINE * (self.l1_misses + self.l1_written_back)

    @property
    def memory_bytes(self) -> int:
        """Bytes moved between L2 and what lies behind it."""
        return LINE * (self.l2_misses + self.l2_written_back)


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """One call of one kernel from empty caches."""

    kernel: str
    label: str
    multiply_adds: int
    computing: Counts
    packing: Counts
    """What packing functions did, and all stores into the workspace."""

    @property
    def total(self) -> Counts:
        return self.computing + self.packing

    def per_thousand(self, count: int) -> float:
        """A count for every 1000 multiply-adds; 0 where there are none."""
        return 1e3 * count / self.multiply_adds if self.multiply_adds else 0.0

    def to_json(self) -> dict[str, Any]:
        """The counts by name: `total`, and its part `packing`."""
        return {"multiply_adds": self.multiply_adds, "total": asdict(self.total), "packing": asdict(self.packing)}

    @classmethod
    def from_json(cls, kernel: str, label: str, data: Mapping[str, Any]) -> CacheCounts:
        """Inverse of `to_json`."""
        total, packing = (tuple(data[part][name] for name in COUNTERS) for part in ("total", "packing"))
        computing = Counts(*(whole - part for whole, part in zip(total, packing, strict=True)))
        return cls(kernel, label, data["multiply_adds"], computing, Counts(*packing))


def host_caches(info: CpuInfo) -> Caches:
    """This machine's L1 and L2; the TLB is the reference one, for systems do not tell."""
    first, second = info.cache(1), info.cache(2)
    if first is None or second is None:
        raise UsageError("the system names no L1 or L2 cache; give --l1 and --l2")
    return Caches(Level(first.size_bytes, first.ways), Level(second.size_bytes, second.ways))


def simulate(
    kernel: Kernel, op: Op, problem: Problem, caches: Caches, config: Mapping[str, int] | None = None
) -> CacheCounts:
    """Run `kernel` once on one thread, every access of it through the model in `codegen/cachesim.py`.

    Accesses are those the kernel's source makes: the compiler may join neighbouring ones into one instruction,
    which changes `accesses` and nothing else. Prefetches, the stack and the worker pool's words are left out.
    Raises `CompileError`, `UsageError` (configuration, or a kernel for another device), `MemoryError`.
    """
    device = ProbedCpu(CacheProbe(caches))
    bound = _bind(kernel, op, problem, device, config)
    device.state[:] = 0
    if "workspace" in kernel.args:
        room = bound.launches[0].args[kernel.args.index("workspace")]
        device.state[WORKSPACE], device.state[WORKSPACE_END] = room.address, room.address + room.nbytes
    bound.run()
    computing, packing = (
        Counts(*(int(word) for word in device.state[bank : bank + len(COUNTERS)])) for bank in (0, BANK)
    )
    return CacheCounts(kernel.id, problem.label, op.flops(problem) // 2, computing, packing)


@dataclass(frozen=True, slots=True)
class PackingTime:
    """Time in packing functions, of all; microseconds, medians over the calls. Packing inside tiles is not in it."""

    packing_us: float
    total_us: float
    calls: int
    """Of packing functions, in one call of the kernel."""

    @property
    def share(self) -> float:
        return self.packing_us / self.total_us


def time_packing(
    kernel: Kernel, op: Op, problem: Problem, config: Mapping[str, int] | None = None, repeats: int = 9
) -> PackingTime | None:
    """Time `kernel` on one thread with a clock around its packing functions; `None` when it calls none."""
    device = ProbedCpu(PackingClock())
    bound = _bind(kernel, op, problem, device, config)
    bound.run()
    samples = []
    for _ in range(repeats):
        device.state[:] = 0
        (total_us,) = bound.time(1)
        samples.append((float(device.state[0]) / 1e3, total_us))
    packing_us, total_us = np.median(samples, axis=0)
    calls = int(device.state[1])
    return PackingTime(float(packing_us), float(total_us), calls) if calls else None


def _bind(kernel: Kernel, op: Op, problem: Problem, device: ProbedCpu, config: Mapping[str, int] | None) -> BoundKernel:
    if kernel.device != "cpu":
        raise UsageError(f"{kernel.id} is a kernel for {kernel.device}; only CPU kernels can be looked into")
    contents = op.fill(problem, np.random.default_rng(0))
    arrays = {}
    for operand in op.operands(problem):
        words = operand.rows * operand.ld
        flat = device.allocate(4 * words).array.view(np.float32)
        flat.reshape(operand.rows, operand.ld)[:, : operand.cols] = contents[operand.name]
        arrays[operand.name] = flat
    return bind(kernel, device, op, problem, arrays, config=config)
