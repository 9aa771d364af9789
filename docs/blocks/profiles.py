"""What Nsight Compute said of the rungs and of the vendor's kernel, with the emulator's counts beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from blocks.gpu_counts import number
from blocks.markdown import markdown_table
from blocks.records import RESULTS
from blocks.speeds import rungs
from gemmlab.measure.climb_rows import short_size

PROFILES, SCHEMA = "h200/ncu.json", "gemmlab.ncu/1"
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
SHARES: Mapping[str, tuple[str, ...]] = {
    "FMA pipes": ("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",),
    "issue slots": ("smsp__issue_active.avg.pct_of_peak_sustained_active",
                    "smsp__inst_issued.avg.pct_of_peak_sustained_active"),
    "memory throughput": ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",),
    "L1 hits": ("l1tex__t_sector_hit_rate.pct",),
    "L2 hits": ("lts__t_sector_hit_rate.pct",),
    "warps": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
}  # fmt: skip
"""Percentages by heading: the first of the metrics that this version of ncu has."""
COUNTS: Mapping[str, str] = {
    "warp instructions": "inst_executed",
    "threads of them": "thread_inst_executed_true",
    "shared wavefronts": "memory_l1_wavefronts_shared",
    "of them ideal": "memory_l1_wavefronts_shared_ideal",
    "global sectors": "memory_l2_theoretical_sectors_global",
}
ARBITRATION = (
    "Counted by Nsight Compute, and by the emulator where it differs. The hardware's counter of bank conflicts also "
    "sees arbitration, which addresses cannot show: the excess of wavefronts over ideal ones is what addresses cost."
)


@dataclass(frozen=True, slots=True)
class Profile:
    """One contestant at one size."""

    contestant: str
    size: str
    kernels: tuple[str, ...]
    counts: Mapping[str, float]
    metrics: Mapping[str, float]
    emulated: Mapping[str, float]
    disagreements: tuple[str, ...] | None
    """`None` where nothing was emulated."""

    @property
    def name(self) -> str:
        return self.contestant.removeprefix("kernel:")

    @property
    def stalls(self) -> dict[str, float]:
        """Cycles that a warp spends in each state for one instruction it issues, the longest first."""
        found = {match[1]: value for name, value in self.metrics.items() if (match := STALL.fullmatch(name))}
        return dict(sorted(found.items(), key=lambda item: -item[1]))


@cache
def profiles() -> tuple[Profile, ...]:
    """Of the record; none where there is none."""
    return tuple(_profile(one) for one in _record().get("launches", ()))


def profiles_block() -> str:
    """Both tables with their headings, or nothing."""
    found = _in_order(profiles())
    if not found:
        return ""
    record = _record()
    where = f"{record['device']}, {record['profiler']}, {str(record['time_utc'])[:10]}"
    parts = ["## Under Nsight Compute", f"On {where}. The vendor's own kernel stands below the rungs."]
    for size in sorted({one.size for one in found}, key=len):
        at_size = [one for one in found if one.size == size]
        parts += [f"### At {short_size(size)}", _shares(at_size)]
        if any(one.disagreements is not None for one in at_size):
            parts += [ARBITRATION, _beside(at_size)]
    return "\n\n".join(parts)


def _shares(found: Sequence[Profile]) -> str:
    lines = []
    for one in found:
        waits = [f"{name.replace('_', ' ')} {value:.2f}" for name, value in one.stalls.items() if name != "selected"]
        lines.append([
            f"`{one.name}`", *(_share(one, names) for names in SHARES.values()),
            f"{sum(one.stalls.values()):.2f}" if one.stalls else "", ", ".join(waits[:2]),
        ])  # fmt: skip
    heading = ["", *SHARES, "cycles an instruction", "of them mostly"]
    table = markdown_table(heading, lines, ["of them mostly"])
    library = [f"{one.name}: {', '.join(dict.fromkeys(one.kernels))}." for one in found if not _is_rung(one)]
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


def _is_rung(one: Profile) -> bool:
    return one.contestant.startswith("kernel:")


def _in_order(found: Sequence[Profile]) -> list[Profile]:
    """Rungs of the float32 ladder as they climb, then libraries."""
    order = [kernel.id for kernel in rungs()]
    mine = [one for one in found if one.name in order]
    return [*sorted(mine, key=lambda one: order.index(one.name)), *(one for one in found if not _is_rung(one))]


def _profile(one: Mapping[str, Any]) -> Profile:
    said = one.get("disagreements")
    return Profile(
        contestant=one["contestant"], size=one["size"], kernels=tuple(one["kernels"]), counts=one["counts"],
        metrics=one["metrics"], emulated=one.get("emulated", {}).get("totals", {}),
        disagreements=None if said is None else tuple(said),
    )  # fmt: skip


@cache
def _record() -> Mapping[str, Any]:
    path = RESULTS / PROFILES
    if not path.exists():
        return {}
    data: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{path.name} is no {SCHEMA}")
    return data


BLOCKS: Mapping[str, Callable[[], str]] = {"gpu-ncu": profiles_block}
