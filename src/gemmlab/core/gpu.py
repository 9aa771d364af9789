"""Limits of GPU architectures, peaks of GPU models, and the occupancy of a kernel.

Sources. Limits: the technical specifications by compute capability in the CUDA programming guide, and its table of
arithmetic throughput (`fma_lanes`). Allocation units and the arithmetic of `occupancy`: the occupancy calculator that
comes with the toolkit, and from compute capability 8.0 the tuning guides, which say that the system keeps 1 KiB of
shared memory for each block. `param_base`: read from compiled code; 7.0 is assumed to have that of 7.5.
`texture_1d_linear`: the figure of an H200's driver for 9.0 and 10.x; half of it, the older limit, for the others, which
were not queried. Models: NVIDIA's data sheets and architecture white papers; the clock is the highest boost clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gemmlab.core.errors import UsageError

WARP = 32
KIB = 1024


@dataclass(frozen=True, slots=True)
class GpuLimits:
    """Limits of one architecture. Sizes are in bytes, registers have 32 bits; "SM" is a streaming multiprocessor."""

    arch: str
    """Name of the architecture, such as `"sm_90"`."""
    warps_per_sm: int
    blocks_per_sm: int
    smem_per_sm: int
    smem_per_block: int
    """Most shared memory of a block. Beyond `static_smem_per_block` it must be dynamic and enabled for the kernel."""
    smem_reserved: int
    """Bytes of shared memory that the system reserves for every block."""
    smem_unit: int
    """Allocation unit in bytes: a block's shared memory is rounded up to a multiple of it."""
    l1_bytes: int
    """Size of an SM's level-1 cache and shared memory together."""
    fma_lanes: int
    """Float32 FMAs (of one thread each) that an SM starts per clock."""
    load_lanes: int
    """Load/store units of an SM: the threads whose accesses it starts per clock, by NVIDIA's white papers."""
    param_base: int
    """Offset in bytes of the first kernel argument in constant bank 0."""
    registers_per_sm: int = 65536
    registers_per_block: int = 65536
    registers_per_thread: int = 255
    register_unit: int = 256
    """Allocation unit: the registers of a warp are rounded up to a multiple of it."""
    partitions: int = 4
    """Partitions of an SM, each with an equal part of the registers; a warp runs in one of them."""
    threads_per_block: int = 1024
    block_dim: tuple[int, int, int] = (1024, 1024, 64)
    grid_dim: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    static_smem_per_block: int = 48 * KIB
    local_per_thread: int = 512 * KIB
    constant_bytes: int = 64 * KIB
    param_bytes: int = 32764
    barriers_per_block: int = 16
    barriers_per_sm: int | None = None
    """Most named barriers of all blocks resident on an SM; `None` if not measured: `occupancy` ignores them."""
    texture_1d_linear: int = 1 << 27
    """Most texels of a one-dimensional texture over linear memory."""

    @property
    def threads_per_sm(self) -> int:
        """Most threads resident on an SM."""
        return self.warps_per_sm * WARP


L2_BYTES_PER_CLOCK = 5120
"""Peak of the level-2 cache, bytes per clock of the whole GPU; stated by NVIDIA for A100."""


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One GPU product with its peak figures. `sms` is the number of its SMs."""

    name: str
    limits: GpuLimits
    sms: int
    boost_mhz: int
    l2_bytes: int
    memory_gbs: float
    """Peak bandwidth of device memory, 10^9 bytes a second."""
    memory_bytes: int
    l2_bytes_per_clock: int = L2_BYTES_PER_CLOCK
    """The most bytes that the level-2 cache delivers per clock. NVIDIA states it for A100 and V100; other models have
    the figure of A100.
    """

    @property
    def l2_gbs(self) -> float:
        """Upper bound of the level-2 bandwidth, 10^9 bytes a second, with at most 64 bytes per clock for each SM."""
        return min(self.l2_bytes_per_clock, 64 * self.sms) * self.boost_mhz / 1e3

    @property
    def l1_gbs(self) -> float:
        """Bandwidth of all SMs' level-1 caches and shared memories, 10^9 bytes a second: 128 bytes per clock each."""
        return self.sms * 128 * self.boost_mhz / 1e3

    @property
    def peak_gflops(self) -> float:
        """Float32 peak without tensor cores in GFLOP/s: SMs x `fma_lanes` x 2 at the boost clock."""
        return self.sms * self.limits.fma_lanes * 2 * self.boost_mhz / 1e3


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The occupancy of a kernel: how many blocks fit one SM, and the numbers behind it."""

    warps_per_block: int
    registers_per_warp: int
    """Registers of a warp, rounded up to the allocation unit."""
    smem_per_block: int
    """Bytes of shared memory of a block and those that the system reserves, rounded up to the allocation unit."""
    allowed: Mapping[str, int]
    """Blocks on an SM that each of the limits `warps`, `blocks`, `registers`, `smem`, `barriers` allows. `smem` is
    absent if a block takes none, `barriers` if they suffice for as many blocks as `blocks` allows, or if their limit is
    not known.
    """
    warps_per_sm: int
    """Most warps that the architecture allows on an SM."""

    @property
    def blocks(self) -> int:
        """Blocks resident on an SM; 0 if a block does not fit."""
        return min(self.allowed.values())

    @property
    def warps(self) -> int:
        """Warps resident on an SM."""
        return self.blocks * self.warps_per_block

    @property
    def fraction(self) -> float:
        """Resident warps divided by `warps_per_sm`."""
        return self.warps / self.warps_per_sm

    @property
    def binding(self) -> tuple[str, ...]:
        """The limits that determine `blocks`: the names in `allowed` with the smallest count."""
        return tuple(name for name, count in self.allowed.items() if count == self.blocks)


def limits(arch: str) -> GpuLimits:
    """Return the limits of an architecture such as `"sm_90"`; a suffix (`"sm_90a"`, `"sm_100f"`) does not change them.

    Raises `UsageError` that lists the known architectures.
    """
    match = re.fullmatch(r"(sm_\d+)[af]?", arch)
    found = _LIMITS.get(match[1]) if match else None
    if found is None:
        raise UsageError(f"no limits known for architecture {arch!r}: there are those of {', '.join(_LIMITS)}")
    return found


def model(name: str) -> GpuModel:
    """Return the product that a driver or a user calls `name`: `"h100"`, `"RTX3090"`, `"NVIDIA A100-SXM4-80GB"`.

    Raises `UsageError` that lists the known products; also for an unknown variant of one (`"RTX 3090 Ti"`), as its
    figures differ.
    """
    apart = re.sub(r"\brtx(?=a?\d)", "rtx ", name.lower())
    words = frozenset(re.findall(r"[a-z0-9]+", apart)) - _BY_THE_WAY
    for known in _MODELS:
        core = frozenset(known.name.lower().split())
        if words and words | {"rtx", "agx"} & core in (core, core | {f"{round(known.memory_bytes / 1e9)}gb"}):
            return known
    raise UsageError(f"no figures known for GPU {name!r}: there are those of {', '.join(m.name for m in _MODELS)}")


def occupancy(limits: GpuLimits, registers: int, smem_bytes: int, threads: int, barriers: int = 0) -> Occupancy:
    """Compute occupancy from `registers` per thread and, per block, `threads`, bytes of static and dynamic shared
    memory, and named `barriers`.

    A kernel whose blocks need more registers or shared memory than a block may have gets 0 blocks. Raises `UsageError`
    for threads or registers beyond the architecture's limits or below 1, and for negative bytes.
    """
    if not 1 <= threads <= limits.threads_per_block:
        raise UsageError(f"{threads} threads a block: {limits.arch} runs 1 to {limits.threads_per_block}")
    if not 1 <= registers <= limits.registers_per_thread:
        raise UsageError(f"{registers} registers a thread: {limits.arch} has 1 to {limits.registers_per_thread}")
    if smem_bytes < 0:
        raise UsageError(f"{smem_bytes} bytes of shared memory: there are none below 0")
    warps = -(-threads // WARP)
    registers_per_warp = _round_up(registers * WARP, limits.register_unit)
    # A warp's registers lie in one partition, but a block's warps may lie in any. The check whether one block fits
    # assumes that every partition has as many of its warps as the fullest partition.
    resident = limits.registers_per_sm // limits.partitions // registers_per_warp * limits.partitions
    block_fits = _round_up(warps, limits.partitions) * registers_per_warp <= limits.registers_per_block
    allowed = {
        "warps": limits.warps_per_sm // warps,
        "blocks": limits.blocks_per_sm,
        "registers": resident // warps if block_fits else 0,
    }
    smem = _round_up(smem_bytes + limits.smem_reserved, limits.smem_unit)
    if smem:
        allowed["smem"] = limits.smem_per_sm // smem if smem_bytes <= limits.smem_per_block else 0
    if limits.barriers_per_sm is not None and barriers * limits.blocks_per_sm > limits.barriers_per_sm:
        allowed["barriers"] = limits.barriers_per_sm // barriers
    return Occupancy(warps, registers_per_warp, smem, allowed, limits.warps_per_sm)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _limits_by_name() -> dict[str, GpuLimits]:
    volta = GpuLimits(
        arch="sm_70", warps_per_sm=64, blocks_per_sm=32, smem_per_sm=96 * KIB, smem_per_block=96 * KIB,
        smem_reserved=0, smem_unit=256, l1_bytes=128 * KIB, fma_lanes=64, load_lanes=32, param_base=0x160,
    )  # fmt: skip
    turing = replace(
        volta, arch="sm_75", warps_per_sm=32, blocks_per_sm=16, smem_per_sm=64 * KIB, smem_per_block=64 * KIB,
        l1_bytes=96 * KIB, load_lanes=16,
    )  # fmt: skip
    a100 = replace(
        volta, arch="sm_80", smem_per_sm=164 * KIB, smem_per_block=163 * KIB, smem_reserved=KIB, smem_unit=128,
        l1_bytes=192 * KIB,
    )  # fmt: skip
    ampere = replace(
        a100, arch="sm_86", warps_per_sm=48, blocks_per_sm=16, smem_per_sm=100 * KIB, smem_per_block=99 * KIB,
        l1_bytes=128 * KIB, fma_lanes=128, load_lanes=16,
    )  # fmt: skip
    orin = replace(ampere, arch="sm_87", smem_per_sm=164 * KIB, smem_per_block=163 * KIB, l1_bytes=192 * KIB)
    ada = replace(ampere, arch="sm_89", blocks_per_sm=24)
    hopper = replace(
        a100, arch="sm_90", smem_per_sm=228 * KIB, smem_per_block=227 * KIB, l1_bytes=256 * KIB, fma_lanes=128,
        param_base=0x210, texture_1d_linear=1 << 28, barriers_per_sm=64,
    )  # fmt: skip
    blackwell = replace(hopper, arch="sm_100", param_base=0x380, barriers_per_sm=None)
    consumer = replace(ada, arch="sm_120", param_base=0x380)
    known = (volta, turing, a100, ampere, orin, ada, hopper, blackwell, replace(blackwell, arch="sm_103"), consumer,
             replace(consumer, arch="sm_121"))  # fmt: skip
    return {entry.arch: entry for entry in known}


_LIMITS = _limits_by_name()
_LIMITLESS = ("sm_72", "sm_88", "sm_101", "sm_110")
"""Architectures that the compiler supports but whose limits are not known here."""
ARCHITECTURES = tuple(sorted((*_LIMITS, *_LIMITLESS), key=lambda arch: int(arch[3:])))
_MIB = 1 << 20
_GB = 10**9
# Words that drivers use in names of GPUs and that do not distinguish products.
_BY_THE_WAY = frozenset({
    "nvidia", "tesla", "geforce", "jetson", "gpu", "tensor", "core", "sxm", "sxm2", "sxm4", "sxm5", "hbm2", "hbm2e",
    "hbm3", "hbm3e",
})  # fmt: skip
_MODELS = (
    GpuModel("H200", _LIMITS["sm_90"], 132, 1980, 60 * _MIB, 4800, 141 * _GB),
    GpuModel("H100", _LIMITS["sm_90"], 132, 1980, 50 * _MIB, 3350, 80 * _GB),
    GpuModel("H100 PCIe", _LIMITS["sm_90"], 114, 1755, 50 * _MIB, 2039, 80 * _GB),
    GpuModel("A100", _LIMITS["sm_80"], 108, 1410, 40 * _MIB, 2039, 80 * _GB),
    GpuModel("A100 40GB", _LIMITS["sm_80"], 108, 1410, 40 * _MIB, 1555, 40 * _GB),
    GpuModel("L4", _LIMITS["sm_89"], 58, 2040, 48 * _MIB, 300, 24 * _GB),
    GpuModel("L40S", _LIMITS["sm_89"], 142, 2520, 96 * _MIB, 864, 48 * _GB),
    GpuModel("RTX 3090", _LIMITS["sm_86"], 82, 1695, 6 * _MIB, 936, 24 * _GB),
    GpuModel("RTX 4090", _LIMITS["sm_89"], 128, 2520, 72 * _MIB, 1008, 24 * _GB),
    GpuModel("RTX A6000", _LIMITS["sm_86"], 84, 1800, 6 * _MIB, 768, 48 * _GB),
    GpuModel("AGX Orin", _LIMITS["sm_87"], 16, 1300, 4 * _MIB, 204.8, 64 * _GB),
    GpuModel("V100", _LIMITS["sm_70"], 80, 1530, 6 * _MIB, 900, 16 * _GB, l2_bytes_per_clock=2048),
    GpuModel("T4", _LIMITS["sm_75"], 40, 1590, 4 * _MIB, 320, 16 * _GB),
)
