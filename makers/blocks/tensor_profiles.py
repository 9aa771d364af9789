"""The block of Nsight Compute's figures of the tensor-core rungs and the library, compared with the
emulator's counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocks.gpu_counts import number
from blocks.markdown import markdown_table
from blocks.profiles import PROFILES, Profile, profiles
from blocks.tensor import rungs
from gemmlab.core.precision import TF32
from gemmlab.results.climb_rows import short_size

SHARES: Mapping[str, str] = {
    "mma pipe": "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active",
    "wgmma pipe": "sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active",
    "issue slots": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "memory throughput": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "L2 hits": "lts__t_sector_hit_rate.pct",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"


def profile_block() -> str:
    """Return a table with one line for each rung and library: Nsight Compute's figures at the larger size, and at the
    smaller one the counts that differ from the emulator's.
    """
    compilers: set[str] = set()
    lines = []
    libraries = dict.fromkeys(p.name for p in profiles() if p.is_library and p.facts.get("precision") == TF32)
    for name in (*(kernel.id for kernel in rungs()), *libraries):
        mine = [one for one in profiles() if one.name == name]
        if not mine:
            continue
        big, small = max(mine, key=_extent), min(mine, key=_extent)
        waits = [f"{why.replace('_', ' ')} {n:.2f}" for why, n in big.stall_cycles.items() if why != "selected"]
        if not big.is_library:
            compilers.add(str(big.facts["compiler"]))
        lines.append([
            f"`{name}`" if big.is_library else f"[`{name}`](#{name})",
            *(f"{big.metrics[metric]:.1f}%" for metric in SHARES.values()),
            number(big.metrics[CONFLICTS]), f"{sum(big.stall_cycles.values()):.2f}", ", ".join(waits[:2]),
            "" if small.disagreements is None else "; ".join(small.disagreements) or "equal",
        ])  # fmt: skip
    heading = ["rung", *SHARES, "bank conflicts of loads", "cycles an instruction", "of them mostly", "exact counts"]
    note = (
        f"By {PROFILES} at {short_size(big.size)}, of code compiled by {', '.join(sorted(compilers))}; the last column "
        f"compares the emulator's counts of the same code at {short_size(small.size)}. The pipes' shares are of "
        "instructions: an `m16n8k8` is two of `m16n8k4`, and a `wgmma` many of either."
    )
    return "\n\n".join([markdown_table(heading, lines, ["of them mostly", "exact counts"]), note])


def _extent(one: Profile) -> int:
    return int(one.size.partition("x")[0])


BLOCKS: Mapping[str, Callable[[], str]] = {"tensor-ncu": profile_block}
