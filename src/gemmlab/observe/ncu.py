"""Profile one execution of each of several contestants with Nsight Compute, for comparison with the emulator.

ncu runs the program `ncu_target`, which switches profiling on around one execution of each contestant. Its report is
read back: counts that the emulator must match exactly, and metrics that only a GPU has.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

from gemmlab.core.errors import PeerError, UsageError
from gemmlab.core.hardware import usable_cpus
from gemmlab.observe.ncu_program import find_ncu, run
from gemmlab.observe.ncu_report import METRICS, Instructions, from_csv, from_report, totals_from_csv
from gemmlab.observe.profile import Profile
from gemmlab.ops.catalog import find_op
from gemmlab.ops.op import Problem
from gemmlab.timing.peers import Spec

SECTIONS = (
    "SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "SchedulerStats", "WarpStateStats",
    "Occupancy", "LaunchStats", "SourceCounters",
)  # fmt: skip
EXACT = (
    "smsp__inst_executed.sum", "smsp__thread_inst_executed.sum", "smsp__thread_inst_executed_pred_on.sum",
)  # fmt: skip
"""Metrics of a whole launch, besides those of `METRICS`, in which the emulator must equal ncu."""
_PREDICATED = ("thread_inst_executed_true", "smsp__thread_inst_executed_pred_on.sum")
BESIDE = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
)  # fmt: skip
"""Metrics that the emulator has too, but whose values may differ: hardware adds arbitration, or omits data already in a
line.
"""
ONLY_GPU = (
    "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_sector_hit_rate.pct",
    "l1tex__t_sector_hit_rate.pct", "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
)  # fmt: skip
_METRICS = (
    *map(re.escape, (*EXACT, *BESIDE, *ONLY_GPU)),
    r"sm__inst_executed_pipe_\w+\.avg\.pct_of_peak_sustained_active",
    r"smsp__pcsamp_warps_issue_stalled_\w+(\.sum)?",
    r"smsp__average_warps_issue_stalled_\w+_per_issue_active\.ratio",
    r"smsp__(issue_active|inst_issued|warps_active|warps_eligible)\.avg\.(per_cycle_active|pct_of_peak_sustained_active)",
    r"(gpu__compute_memory|gpu__dram|lts__t|l1tex__\w+)_throughput\.avg\.pct_of_peak_sustained_(elapsed|active)",
    r"launch__(registers_per_thread|grid_size|block_size|waves_per_multiprocessor|occupancy_\w+)",
)
"""Patterns of the metrics to keep from a report; those in `SECTIONS` exist only if this ncu and GPU have them."""
SESSIONS, IN_A_SESSION = 4, 3
"""The largest number of simultaneous runs of ncu, and of kernels in one run. Runs overlap because they mostly use the
CPU; ncu itself lets only one process profile at a time.
"""


def profile(specs: Sequence[Spec], op: str, problems: Sequence[Problem], ncu: str = "ncu") -> list[Profile]:
    """Profile every contestant on every problem, kernels first; one that cannot be run gets a note instead of figures.

    Raises `ProfilerError` when ncu is missing or lacks permission, `UsageError` for an unusable report, `PeerError`
    with the end of its output when it fails, `TimeLimitError` when the current time limit passes.
    """
    path = find_ncu(ncu)
    ours = [spec for spec in specs if spec.kind == "kernel"]
    shares = [ours[start : start + IN_A_SESSION] for start in range(0, len(ours), IN_A_SESSION)]
    sessions: list[tuple[Sequence[Spec], Sequence[Problem]]] = [(share, problems) for share in shares]
    # The number of launches that a library makes is unknown: alone in a session, all launches are its own.
    sessions += [([spec], [problem]) for spec in specs if spec.kind != "kernel" for problem in problems]
    # The time limit is in the caller's context; a thread has one of its own, and a context serves one thread at a time.
    contexts = [copy_context() for _ in sessions]
    with ThreadPoolExecutor(max(1, min(SESSIONS, len(sessions), len(usable_cpus()) // 2))) as pool:
        profiled = pool.map(
            lambda context, session: context.run(_session, path, session[0], op, session[1]), contexts, sessions
        )
        return [one for profiles in profiled for one in profiles]


def _session(ncu: str, specs: Sequence[Spec], op: str, problems: Sequence[Problem]) -> list[Profile]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan, done, report = folder / "plan.json", folder / "done.json", folder / "report.ncu-rep"
        work = {"op": op, "op_file": find_op(op).file, "problems": [problem.to_json() for problem in problems]}
        plan.write_text(json.dumps({**work, "specs": [spec.to_json() for spec in specs]}))
        target = [sys.executable, "-m", "gemmlab.observe.ncu_target", str(plan), str(done)]
        base = [ncu, "--force-overwrite", "--export", str(report), "--profile-from-start", "off", "--clock-control",
                "none", *(part for section in SECTIONS for part in ("--section", section))]  # fmt: skip
        precision = specs[0].precision
        try:
            run([*base, "--metrics", ",".join([*METRICS, *EXACT, *BESIDE, *ONLY_GPU]), *target], precision)
        except PeerError as error:
            if "metric" not in str(error).lower():
                raise
            # One metric that this ncu does not know makes it fail: try again with those that every version has.
            run([*base, "--metrics", ",".join([*METRICS, *EXACT]), *target], precision)
        if not done.exists():
            raise PeerError(f"{Path(ncu).name} did not run {' '.join(target[1:3])}")
        launches = read(ncu, report) if report.exists() else []
        return group(json.loads(done.read_text()), launches, specs)


def read(ncu: str, report: Path) -> list[Instructions]:
    """Return every launch of a report, by ncu's Python module if it is found, else from the pages that ncu prints.

    Raises `UsageError` if the pages disagree on the number of launches.
    """
    try:
        return from_report(ncu, report, _METRICS)
    except ImportError:
        printed = [ncu, "--import", str(report), "--csv", "--print-units", "base", "--page"]
        launches = from_csv(run([*printed, "source"]))
        totals = totals_from_csv(run([*printed, "raw"]), _METRICS)
        if len(launches) != len(totals):
            raise UsageError(f"ncu reports {len(launches)} launches by instruction, {len(totals)} in total") from None
        return [Instructions(one.name, one.rows, counted) for one, counted in zip(launches, totals, strict=True)]


def group(
    done: Sequence[Mapping[str, Any]], launches: Sequence[Instructions], specs: Sequence[Spec] = ()
) -> list[Profile]:
    """Assign launches, in order, to contestants and return their profiles.

    `done` has what `ncu_target.execute` yields. An item's `launches` is the number of its launches, or `None` for all.
    Raises `UsageError` if the numbers do not add up to that of `launches`, and for an item with 0 launches and no
    `why`.
    """
    counts = [len(launches) if item["launches"] is None else item["launches"] for item in done]
    if sum(counts) != len(launches) or not all(
        count or "why" in item for item, count in zip(done, counts, strict=True)
    ):
        names = ", ".join(launch.name for launch in launches[:4])
        raise UsageError(f"{sum(counts)} launches were made and {len(launches)} profiled ({names or 'none'}, ...)")
    named = {spec.name: spec for spec in specs}
    found, rest = [], list(launches)
    for item, count in zip(done, counts, strict=True):
        spec = named.get(item["contestant"])
        labels = {} if spec is None else {"role": spec.role, "precision": spec.precision}
        found.append(_profile(item, rest[:count], labels))
        rest = rest[count:]
    return found


def _profile(item: Mapping[str, Any], launches: Sequence[Instructions], labels: Mapping[str, str]) -> Profile:
    facts = {**item["facts"], **labels}
    if not launches:
        return Profile(item["contestant"], item["size"], (), facts, {}, {}, notes=(str(item["why"]),))
    counts = {
        name: sum(counted.get(name, 0.0) for launch in launches for _, _, counted in launch.rows) for name in METRICS
    }
    longest = max(launches, key=lambda launch: launch.totals.get("gpu__time_duration.sum", 0.0))
    opcodes = sum((launch.opcodes() for launch in launches), Counter[str]())
    return Profile(
        item["contestant"], item["size"], tuple(launch.name for launch in launches), facts, counts, longest.totals,
        opcodes=dict(opcodes.most_common()),
    )  # fmt: skip


def disagreements(one: Profile, emulated: Mapping[str, float]) -> list[str]:
    """Return a line for each exact metric in which the emulator's figures differ from those of ncu's profile `one`.

    `emulated` has the emulator's figures by the same names, over all launches. Three differences are none:
    - `one.metrics` are of one launch, so they are compared only if there was no other;
    - a kernel with mbarriers tries a wait again until it ends, and how often depends on time: ncu may count more
      instructions than the emulator, which never tries again;
    - where blocks take tickets from a counter in global memory, the order of the blocks decides which of them do what
      is left: the threads whose predicate was true are not compared.
    """
    theirs = {name: one.counts[name] for name in METRICS if name in one.counts}
    if len(one.kernels) == 1:
        theirs |= {name: one.metrics[name] for name in EXACT if name in one.metrics}
    if "ATOMG" in one.opcodes:
        theirs = {name: value for name, value in theirs.items() if name not in _PREDICATED}
    waits = "SYNCS" in one.opcodes
    return [
        f"{name}: {emulated[name]:.0f} emulated, {value:.0f} by ncu"
        for name, value in theirs.items()
        if name in emulated
        and (emulated[name] > value if waits and "inst_executed" in name else emulated[name] != value)
    ]
