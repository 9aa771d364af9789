"""The figures of a profile in reading order, for one kernel alone or beside those of another kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from gemmlab.analysis.figures import Figure
from gemmlab.analysis.stall_findings import issue_percent
from gemmlab.observe.profile import NCU, Profile

LEAST_PERCENT = 0.5
"""Percentage of a pipe's peak rate, over the active cycles, below which the pipe is left out."""
_MOST_OPCODES = 6
_PIPE = re.compile(r"sm__inst_executed_pipe_(\w+)\.avg\.pct_of_peak_sustained_active")
_ELAPSED = "avg.pct_of_peak_sustained_elapsed"
_TIME = "gpu__time_duration.sum"
_MEMORY = f"gpu__compute_memory_throughput.{_ELAPSED}"
_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
_L1_HITS, _L2_HITS = "l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"
_REQUESTS, _SECTORS = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum",
)
_TEXTURE = "l1tex__t_{}_pipe_tex_mem_texture.sum"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
_WAVEFRONTS, _IDEAL = "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"
Lines = Iterator[tuple[str, str]]


def profile_figures(profile: Profile) -> list[Figure]:
    """Return the figures that were measured.

    A `~` marks a figure that may differ from a real GPU's; `profile.inexact` gives the reason.
    """
    return [Figure(group, name, text) for group, lines in _GROUPS.items() for name, text in lines(profile) if text]


def beside(profile: Profile, other: Profile | None) -> list[tuple[Figure, str]]:
    """Return a kernel's figures, each with the text of another kernel's; the text is empty if the other lacks it."""
    theirs = {(f.group, f.name): f.text for f in profile_figures(other)} if other is not None else {}
    return [(figure, theirs.get((figure.group, figure.name), "")) for figure in profile_figures(profile)]


def _launch(p: Profile) -> Lines:
    blocks, threads = p.first("launch__grid_size"), p.first("launch__block_size")
    yield "blocks, threads each", f"{blocks:,.0f} x {threads:,.0f}" if blocks and threads else ""
    yield "registers a thread", _plain(p.first("launch__registers_per_thread"))
    yield "waves of blocks", _plain(p.first("launch__waves_per_multiprocessor"))
    time = p.first(_TIME)
    yield "time of this launch", f"{time / 1e3:,.1f} us" if time else ""


def _throughput(p: Profile) -> Lines:
    yield "instructions and pipes", _percent(p.first(f"sm__throughput.{_ELAPSED}"))
    yield "memory", _percent(p.first(_MEMORY))
    yield "L2", _percent(p.first(f"lts__t_throughput.{_ELAPSED}"))
    yield "DRAM", _percent(p.first(f"gpu__dram_throughput.{_ELAPSED}"))
    for name, way in (("read", "read"), ("written", "write")):
        moved = p.first(f"dram__bytes_{way}.sum")
        yield f"DRAM, {name}", "" if moved is None else f"{moved / 1e6:,.2f} MB"


def _scheduler(p: Profile) -> Lines:
    """Yield names and texts of a partition's figures, averages over the cycles in which it has warps."""
    yield "cycles with an instruction", _percent(issue_percent(p))
    yield "warps", _plain(p.first("smsp__warps_active.avg.per_cycle_active"))
    yield "warps that could go on", _plain(p.first("smsp__warps_eligible.avg.per_cycle_active"))
    yield "cycles between a warp's instructions", _plain(sum(p.stall_cycles.values()) or None)
    yield "occupancy reached", _percent(p.first(_OCCUPANCY))


def _pipes(p: Profile) -> Lines:
    busy = {match[1]: value for name, value in p.metrics.items() if (match := _PIPE.fullmatch(name))}
    for name, value in sorted(busy.items(), key=lambda item: -item[1]):
        if value >= LEAST_PERCENT:
            yield name.replace("_", " "), _percent(value)


def _instructions(p: Profile) -> Lines:
    yield "by warps", _count(p, "inst_executed")
    yield "lanes that take part", _lanes(p)
    yield "FFMA share", _ffma(p)
    total = sum(p.opcodes.values())
    yield "opcodes", ", ".join(f"{name} {n / total:.1%}" for name, n in list(p.opcodes.items())[:_MOST_OPCODES])


def _global(p: Profile) -> Lines:
    for word, way in (("load", "ld"), ("store", "st")):
        yield f"{word} requests", _plain(p.first(_REQUESTS.format(way)))
        yield f"sectors a {word} request", _per_request(p, way)
    yield "texture requests", _count(p, _TEXTURE.format("requests")) if p.first(_TEXTURE.format("requests")) else ""
    yield "sectors asked for", _count(p, "memory_l2_theoretical_sectors_global")
    yield "L1 hits", _percent(p.first(_L1_HITS))
    yield "L2 hits", _percent(p.first(_L2_HITS))


def _shared(p: Profile) -> Lines:
    wavefronts, ideal = p.first(_WAVEFRONTS), p.first(_IDEAL)
    yield "wavefronts", _count(p, _WAVEFRONTS)
    if wavefronts is not None and ideal is not None:
        yield "of them excessive", f"{_about(p, _IDEAL)}{wavefronts - ideal:,.0f}"
        yield "the same as a share", _excess(p)
    for word, way in (("loads", "ld"), ("stores", "st")):
        yield f"bank conflicts by the counter, {word}", _count(p, _CONFLICTS.format(way))


_GROUPS: Mapping[str, Callable[[Profile], Lines]] = {
    "launch": _launch, "throughput, of the most there is": _throughput, "a partition, in a cycle": _scheduler,
    "pipes, of the most they take": _pipes, "instructions": _instructions, "global memory": _global,
    "shared memory": _shared,
}  # fmt: skip


def _lanes(p: Profile) -> str:
    executed, on = p.first("inst_executed"), p.first("thread_inst_executed_true")
    return _plain(on / executed) if on and executed else ""


def _ffma(p: Profile) -> str:
    ffma, on = p.first("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"), p.first("thread_inst_executed_true")
    return _percent(100 * ffma / on) if ffma is not None and on else ""


def _per_request(p: Profile, way: str) -> str:
    requests, sectors = p.first(_REQUESTS.format(way)), p.first(_SECTORS.format(way))
    return _plain(sectors / requests) if requests and sectors is not None else ""


def _excess(p: Profile) -> str:
    """Return the percentage of all shared memory wavefronts that bank conflicts add, as text; empty if unknown."""
    wavefronts, ideal = p.first(_WAVEFRONTS), p.first(_IDEAL)
    if not wavefronts or ideal is None:
        return ""
    return f"{_about(p, _IDEAL)}{_percent(100 * (wavefronts - ideal) / wavefronts)}"


def _count(p: Profile, name: str) -> str:
    value = p.first(name)
    return "" if value is None else f"{_about(p, name)}{value:,.0f}"


def _about(p: Profile, name: str) -> str:
    return "~" if name in p.inexact else ""


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} %"


_ON_A_GPU: Mapping[str, Callable[[Profile], str]] = {
    "us": lambda p: _plain(None if (ns := p.first(_TIME)) is None else ns / 1e3),
    "FMA\npipe": lambda p: _percent(p.first("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active")),
    "issue\nslots": lambda p: _percent(issue_percent(p)),
    "memory": lambda p: _percent(p.first(_MEMORY)),
    "L1\nhits": lambda p: _percent(p.first(_L1_HITS)),
    "L2\nhits": lambda p: _percent(p.first(_L2_HITS)),
    "occu-\npancy": lambda p: _percent(p.first(_OCCUPANCY)),
}
_ANYWHERE: Mapping[str, Callable[[Profile], str]] = {
    "FFMA": _ffma,
    "sectors\n/load": lambda p: _per_request(p, "ld"),
    "sectors\n/store": lambda p: _per_request(p, "st"),
    "excess\nwavefronts": _excess,
}
_COUNTED: Mapping[str, Callable[[Profile], str]] = {
    "warp\ninstr.": lambda p: _count(p, "inst_executed"),
    "lanes": _lanes,
}


def overview(profiles: Sequence[Profile]) -> tuple[list[str], list[list[str]], list[str]]:
    """Return a table of several profiles: headings, one row a profile, and the reasons why their excess wavefronts are
    inexact (`~`).

    The first columns are times and rates if one of the profiles is from a GPU, else counts. A column without any figure
    is left out.
    """
    first = _ON_A_GPU if any(one.origin == NCU for one in profiles) else _COUNTED
    columns = {heading: [figure(one) for one in profiles] for heading, figure in {**first, **_ANYWHERE}.items()}
    shown = {heading: cells for heading, cells in columns.items() if any(cells)}
    rows = [list(row) for row in zip(*shown.values(), strict=True)]
    return list(shown), rows, list(dict.fromkeys(one.inexact[_IDEAL] for one in profiles if _IDEAL in one.inexact))
