"""Simulate caches with a CPU kernel's loads and stores, by the addresses of a real run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from gemmlab.core.cpu_info import CpuInfo
from gemmlab.core.errors import UsageError
from gemmlab.devices.probed_cpu import ProbedCpu
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.probe_run import bind_probed
from gemmlab.ops.op import Op, Problem
from gemmlab.probes.cachesim import BANK, COUNTERS, LINE, WORKSPACE, WORKSPACE_END, CacheProbe, Caches, Level


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of loads and stores of matrices and packed blocks, of their bytes, and of the lines (for the TLB: pages)
    that they fetched.
    """

    accesses: int = 0
    bytes: int = 0
    l1_misses: int = 0
    l2_misses: int = 0
    tlb_misses: int = 0
    l1_written_back: int = 0
    """Modified lines that L1 evicted to L2."""
    l2_written_back: int = 0
    """Modified lines that L2 evicted to memory."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    @property
    def l2_bytes(self) -> int:
        """Bytes moved between L1 and L2."""
        return LINE * (self.l1_misses + self.l1_written_back)

    @property
    def memory_bytes(self) -> int:
        """Bytes moved between L2 and memory."""
        return LINE * (self.l2_misses + self.l2_written_back)


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """Counts of one call of a kernel, with empty caches at the start."""

    multiply_adds: int
    total: Counts
    packing: Counts | None
    """The counts of packing functions and of all stores into the workspace, a part of the total; `None` for a kernel
    without a workspace.
    """

    def per_thousand(self, count: int) -> float:
        """Return a count per 1000 multiply-adds; 0 if there are no multiply-adds."""
        return 1e3 * count / self.multiply_adds if self.multiply_adds else 0.0


def host_caches(info: CpuInfo) -> Caches:
    """Return this machine's L1 and L2, and the default TLB, because operating systems do not report theirs.

    Raises `UsageError` if the system does not report L1 or L2.
    """
    first, second = info.cache(1), info.cache(2)
    if first is None or second is None:
        raise UsageError("the system names no L1 or no L2 cache; give --l1 and --l2")
    return Caches(Level(first.size_bytes, first.ways), Level(second.size_bytes, second.ways))


def simulate(
    kernel: Kernel, op: Op, problem: Problem, caches: Caches, config: Mapping[str, int] | None = None
) -> CacheCounts:
    """Run `kernel` once on one thread and pass each of its accesses to the model in `probes/cachesim.py`.

    Accesses are those in the kernel's source: the compiler may join adjacent ones into one instruction, which would
    change `Counts.accesses` and nothing else. Prefetches, the stack and the worker pool's words are left out. Raises
    `CompileError`, `UsageError` (configuration, or a kernel for another device or operation), `MemoryError`.
    """
    device = ProbedCpu(CacheProbe(caches))
    bound = bind_probed(kernel, op, problem, device, config)
    device.state[:] = 0
    packs = "workspace" in kernel.args
    if packs:
        room = bound.launches[0].args[kernel.args.index("workspace")]
        device.state[WORKSPACE], device.state[WORKSPACE_END] = room.address, room.address + room.nbytes
    bound.run()
    computing, packing = (
        Counts(*(int(word) for word in device.state[bank : bank + len(COUNTERS)])) for bank in (0, BANK)
    )
    return CacheCounts(op.flops(problem) // 2, computing + packing, packing if packs else None)
