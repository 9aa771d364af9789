"""The block of Nsight Compute's figures of the rungs and of the vendor's kernels, with the emulator's counts beside
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from blocks.gpu_counts import number
from blocks.markdown import markdown_table
from blocks.records import RESULTS
from blocks.speeds import extent, rungs
from gemmlab.core.precision import FLOAT32
from gemmlab.observe.profile_reader import Profile, Profiles, load_profiles
from gemmlab.results.climb_rows import short_size

__all__ = ["BLOCKS", "PROFILES", "Profile", "profiles", "profiles_block"]

PROFILES = "h200/ncu.json"
SHARES: Mapping[str, tuple[str, ...]] = {
    "FMA pipes": ("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",),
    "issue slots": ("smsp__issue_active.avg.pct_of_peak_sustained_active",
                    "smsp__inst_issued.avg.pct_of_peak_sustained_active"),
    "memory throughput": ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",),
    "L1 hits": ("l1tex__t_sector_hit_rate.pct",),
    "L2 hits": ("lts__t_sector_hit_rate.pct",),
    "warps": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
}  # fmt: skip
"""Heading -> metrics that are percentages. Versions of ncu name them differently: the first one in the
profile counts.
"""
COUNTS: Mapping[str, str] = {
    "warp instructions": "inst_executed",
    "threads of them": "thread_inst_executed_true",
    "shared wavefronts": "memory_l1_wavefronts_shared",
    "of them ideal": "memory_l1_wavefronts_shared_ideal",
    "global sectors": "memory_l2_theoretical_sectors_global",
}
ARBITRATION = (
    "Counted by Nsight Compute, and by the emulator where it differs. The hardware's counter of bank conflicts also "
    "counts arbitration, which does not depend on addresses. The excess of wavefronts over ideal ones is the cost of "
    "addresses alone."
)


def profiles() -> tuple[Profile, ...]:
    """Return the profiles of the record; none if there is no record."""
    found = _record()
    return () if found is None else found.profiles


def profiles_block() -> str:
    """Return a section with two tables for each size, percentages and counts; empty if there is no record."""
    record = _record()
    found = _in_order(profiles())
    if record is None or not found:
        return ""
    where = f"{record.device}, {record.profiler}, {record.time_utc[:10]}"
    parts = ["## Under Nsight Compute", f"On {where}. The last rows are the vendor's own kernels."]
    for size in sorted({one.size for one in found}, key=extent):
        at_size = [one for one in found if one.size == size]
        parts += [f"### At {short_size(size)}", _shares(at_size)]
        if any(one.disagreements is not None for one in at_size):
            parts += [ARBITRATION, _beside(at_size)]
    return "\n\n".join(parts)


def _shares(found: Sequence[Profile]) -> str:
    lines = []
    for one in found:
        cycles = one.stall_cycles
        waits = [f"{name.replace('_', ' ')} {value:.2f}" for name, value in cycles.items() if name != "selected"]
        lines.append([
            f"`{one.name}`", *(_share(one, names) for names in SHARES.values()),
            f"{sum(cycles.values()):.2f}" if cycles else "", ", ".join(waits[:2]),
        ])  # fmt: skip
    heading = ["", *SHARES, "cycles an instruction", "of them mostly"]
    table = markdown_table(heading, lines, ["of them mostly"])
    library = [f"{one.name}: {', '.join(dict.fromkeys(one.kernels))}." for one in found if one.is_library]
    return "\n\n".join([table, *library])


def _beside(found: Sequence[Profile]) -> str:
    conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
    lines = [
        [
            f"`{one.name}`", *(_both(one, name) for name in COUNTS.values()),
            number(one.metrics[conflicts]) if conflicts in one.metrics else "",
            "" if one.disagreements is None else "equal" if not one.disagreements else "; ".join(one.disagreements),
        ]
        for one in found
    ]  # fmt: skip
    heading = ["", *COUNTS, "bank conflicts of loads, by the counter", "exact counts"]
    return markdown_table(heading, lines, ["exact counts"])


def _both(one: Profile, name: str) -> str:
    if name not in one.counts:
        return ""
    theirs, ours = one.counts[name], one.emulated.get(name)
    return number(theirs) if ours is None or ours == theirs else f"{number(theirs)} (emulated {number(ours)})"


def _share(one: Profile, names: tuple[str, ...]) -> str:
    return next((f"{one.metrics[name]:.1f}%" for name in names if name in one.metrics), "")


def _in_order(found: Sequence[Profile]) -> list[Profile]:
    """Return the profiles of the float32 ladder's rungs, the lowest first, then those of libraries in float32."""
    order = [kernel.id for kernel in rungs()]
    mine = [one for one in found if one.name in order]
    libraries = [one for one in found if one.is_library and one.facts.get("precision", FLOAT32) == FLOAT32]
    return [*sorted(mine, key=lambda one: order.index(one.name)), *libraries]


@cache
def _record() -> Profiles | None:
    path = RESULTS / PROFILES
    return load_profiles(path) if path.exists() else None


BLOCKS: Mapping[str, Callable[[], str]] = {"gpu-ncu": profiles_block}
