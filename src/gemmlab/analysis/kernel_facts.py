"""Facts about a kernel by name: the figures that the conditions and texts of advice use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gemmlab.analysis.access_sites import SECTOR, SECTORS_IN_A_LINE, AccessRow
from gemmlab.analysis.alternating_stores import alternates
from gemmlab.analysis.arithmetic import DOUBLE, fp64_lanes
from gemmlab.analysis.issue_slots import L1, SPECIAL, IssueReport
from gemmlab.analysis.main_loop import LOOP_CACHE_BYTES, SM_CACHE_BYTES, LoopReport
from gemmlab.analysis.occupancy import OccupancyReport
from gemmlab.analysis.resources import ResourceReport
from gemmlab.analysis.roofline import RooflineReport
from gemmlab.analysis.subject import Subject
from gemmlab.analysis.worst_sites import worst_facts
from gemmlab.core import counters as core
from gemmlab.sass.metrics import WARP, flops

_PRODUCTS, _SUMS = ("gemm", "batch"), ("reduce", "sums")
"""Operations that compute products, and operations that compute sums."""


def facts_of(
    subject: Subject,
    occupancy: OccupancyReport,
    resources: ResourceReport,
    rows: Sequence[AccessRow],
    loop: LoopReport | None,
    issue: IssueReport | None,
    roofline: RooflineReport,
) -> dict[str, float]:
    """Return all figures that `advice.ADVICE` may name, including those of `Counters.facts`.

    Figures of the main loop are 0 for a kernel without one, but `fill_pct` is 100. Each of `rows` belongs to one
    instruction.
    """
    op = "" if subject.kernel is None else subject.kernel.op.partition(":")[0]
    return {
        **subject.counters.facts(),
        "of_product": op in _PRODUCTS,
        "of_sum": op in _SUMS,
        "hazards": len(subject.hazards),
        "wrong": len(subject.wrong),
        "wgmma_serialized": float(subject.serialized is not None),
        "setmaxnreg_ignored": float(subject.setmaxnreg_ignored is not None),
        "arch": int(subject.arch[3:].rstrip("af")),
        "registers": resources.registers,
        "stack_bytes": resources.stack_bytes,
        "spill_bytes": (resources.spill_stores or 0) + (resources.spill_loads or 0),
        "warps": occupancy.found.warps,
        "most_warps": occupancy.found.warps_per_sm,
        "occupancy_pct": 100 * occupancy.found.fraction,
        "partition_warps": occupancy.found.warps / subject.limits.partitions,
        "cache_bytes": LOOP_CACHE_BYTES,
        "sm_cache_bytes": SM_CACHE_BYTES,
        "fma_lanes": subject.limits.fma_lanes,
        "fp64_lanes": fp64_lanes(subject.limits),
        "useful_pct": 100 * _ratio(subject.size.flops, _executed_flops(subject)),
        "dram_gbs": subject.model.memory_gbs,
        **_of_memory(subject, rows, issue),
        **worst_facts(rows),
        **_of_loop(loop, issue, occupancy.found.warps / subject.limits.partitions),
        **_of_roofline(roofline),
    }


def _executed_flops(subject: Subject) -> float:
    """Return the floating-point operations of all lanes whose predicate was true."""
    on = {site.address: site.predicated_on_threads for site in subject.counters.sites}
    return sum(flops(i) / WARP * on.get(i.address, 0) for i in subject.function.instructions)


def _of_memory(subject: Subject, rows: Sequence[AccessRow], issue: IssueReport | None) -> dict[str, float]:
    total = sum(row.cycles for row in rows)
    loads = [row for row in rows if row.kind == core.GLOBAL_LOAD]
    stores = [row for row in rows if row.kind == core.GLOBAL_STORE]
    shared = {kind: [row for row in rows if row.kind == kind] for kind in core.SHARED_KINDS}
    everywhere = [row for group in shared.values() for row in group]
    requests = _sum(loads, "requests")
    narrow = sum(row.requests for row in loads if "128" not in row.opcode.split("."))
    # Another finding counts the gain of coalescing, so the gain of tiles starts from coalesced accesses.
    requested = sum(row.sectors_coalesced for row in rows if row.kind in (*core.GLOBAL_KINDS, core.TEXTURE_LOAD))
    reading = [row for row in rows if row.kind in (core.GLOBAL_LOAD, core.TEXTURE_LOAD)]
    coalesced = sum(max(row.requests, row.sectors_coalesced / SECTORS_IN_A_LINE) for row in reading)
    # Busy cycles of L1 as a fraction of the busiest unit's: 1 if that is L1, or if nothing is known.
    pressure = 1.0 if issue is None else issue.cycles[L1] / issue.cycles[issue.busiest]

    def conflicts(kind: str) -> float:
        return 100 * pressure * _sum(shared[kind], "excess") / total if total else 0.0

    def busy(*kinds: str) -> float:
        return 100 * pressure * _ratio(sum(row.cycles for row in rows if row.kind in kinds), total)

    return {
        "l1_pct": 100 * pressure,
        "local_pct": busy(core.LOCAL_LOAD, core.LOCAL_STORE),
        "atomic_pct": busy(core.GLOBAL_ATOMIC, core.SHARED_ATOMIC),
        "load_sectors": _sum(loads, "sectors"),
        "load_coalesced_pct": 100 * pressure * _ratio(coalesced, total),
        "load_excess_pct": 100 * pressure * _ratio(_sum(loads, "excess") / SECTORS_IN_A_LINE, total),
        "store_excess_pct": 100 * pressure * _ratio(_sum(stores, "excess") / SECTORS_IN_A_LINE, total),
        "global_narrow_pct": 100 * _ratio(narrow, requests),
        "shared_wavefronts": _sum(everywhere, "wavefronts"),
        "shared_load_excess_pct": 100 * _excess(shared[core.SHARED_LOAD]),
        "shared_store_excess_pct": 100 * _excess(shared[core.SHARED_STORE]),
        "async_copy_excess_pct": 100 * _excess(shared[core.ASYNC_COPY]),
        "load_conflict_pct": conflicts(core.SHARED_LOAD),
        "store_conflict_pct": conflicts(core.SHARED_STORE),
        "copy_conflict_pct": conflicts(core.ASYNC_COPY),
        "async_copies": _sum(shared[core.ASYNC_COPY], "requests"),
        "reuse_possible": _ratio(SECTOR * requested, subject.size.bytes_moved),
    }


def _of_loop(loop: LoopReport | None, issue: IssueReport | None, partition_warps: float) -> dict[str, float]:
    mix: Mapping[str, float] = {} if loop is None else loop.mix
    pipes: Mapping[str, float] = {} if loop is None else {str(name): count for name, count in loop.pipes.items()}
    slots = 0.0 if loop is None else loop.executed
    wide = 0.0 if loop is None else loop.wide_shared
    narrow = mix.get("LDS", 0.0) - wide
    stall = 0.0 if loop is None else loop.stall_cycles
    ffma, together = mix.get("FFMA", 0.0), partition_warps * slots
    return {
        "loop_slots": slots,
        "loop_ffma": ffma,
        "loop_hmma": mix.get("HMMA", 0.0) + mix.get("HGMMA", 0.0),
        "loop_other": slots - ffma,
        "loop_double": pipes.get("fp64", 0.0),
        "loop_conversions": mix.get("F2F", 0.0),
        "double_pct": 0.0 if issue is None else 100 * _of_double(issue),
        "loop_lds": mix.get("LDS", 0.0),
        "loop_wide_lds": wide,
        "loop_narrow_lds": narrow,
        "loop_words": 4 * wide + narrow,
        "loop_ldg": mix.get("LDG", 0.0),
        "loop_narrow_ldg": 0.0 if loop is None else mix.get("LDG", 0.0) + mix.get("LDGSTS", 0.0) - loop.wide_global,
        "loop_sts": mix.get("STS", 0.0),
        "loop_xu": pipes.get("xu", 0.0),
        # An integer division converts to float, takes the reciprocal (MUFU) and converts back; expf has MUFU alone.
        "loop_division": min(mix.get("MUFU", 0.0), mix.get("I2F", 0.0) + mix.get("I2FP", 0.0), mix.get("F2I", 0.0)),
        "loop_integer": sum(pipes.get(name, 0.0) for name in ("alu", "fmaheavy", "uniform")),
        "loop_barriers": 0.0 if loop is None else loop.barriers,
        "loop_alternates": loop is not None and alternates(loop.instructions),
        "loop_bytes": 0 if loop is None else loop.code_bytes,
        "loop_stall": stall,
        "loop_slots_together": together,
        "fill_pct": 100 * together / stall if stall else 100.0,
        "conflicted": 0 if loop is None else loop.conflicted,
        "conflict_cycles": 0 if loop is None else loop.conflict_cycles,
        "issue_pct": 0.0 if issue is None else 100 * slots / issue.cycles[issue.busiest],
        "issue_best_pct": 0.0 if issue is None else 100 * issue.best,
    }


def _of_double(issue: IssueReport) -> float:
    """Return the larger busy fraction of two pipes in an iteration: of double arithmetic, and of conversions."""
    return max(issue.cycles[DOUBLE], issue.cycles[SPECIAL]) / issue.cycles[issue.busiest]


def _of_roofline(roofline: RooflineReport) -> dict[str, float]:
    return {
        "bound_by_l2": roofline.bound_by == roofline.l2.name,
        "bound_by_dram": roofline.bound_by.startswith("DRAM"),
        "l2_intensity": roofline.l2.intensity_most,
        "l2_needed": roofline.inside_gflops / roofline.l2.gbs,
    }


def _excess(rows: Iterable[AccessRow]) -> float:
    rows = list(rows)
    return _ratio(_sum(rows, "excess"), _sum(rows, "wavefronts_ideal"))


def _sum(rows: Iterable[AccessRow], name: str) -> int:
    return sum(getattr(row, name) for row in rows)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
