"""Profiles of a page's kernels: the stalls of their warps, and figures beside those of a peer library."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemmlab.analysis.findings import Finding
from gemmlab.analysis.profile_figures import beside
from gemmlab.analysis.stall_findings import stall_findings, waiting
from gemmlab.core.numerals import plain
from gemmlab.kernels.catalog import ladder
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.profile import NCU, Profile, Profiles
from gemmlab.pages.charts import Drawing
from gemmlab.pages.tables import Cell, Table, size_cell
from gemmlab.plots.chart import specification
from gemmlab.plots.stalls import stall_bars, stall_chart
from gemmlab.results.climb_rows import short_size

_LEAST_SHARE = 0.005
"""A stall state is left out of the table if it takes less than this fraction of a warp's time both in the kernel's
profile and in that of the peer library beside it.
"""


@dataclass(frozen=True, slots=True)
class Profiled:
    """The profile of one kernel in one record, at its largest size."""

    where: str
    other_code: str
    """First 12 digits of the profiled code's digest if it is not that of the explained code; else empty."""
    stalls: Table
    figures: Table
    findings: tuple[Finding, ...]
    doubts: tuple[str, ...]


def profiled(
    name: str, kernel: Kernel | None, profiles: Sequence[Profiles], now: Mapping[str, Any] | None
) -> tuple[Profiled, ...]:
    """Return the kernel's profile from each record that has one.

    `now` is the kernel's explanation as JSON values, if there is one.
    """
    found = []
    for record in profiles:
        mine = [one for one in record.profiles if one.contestant == f"kernel:{name}" and one.kernels]
        if mine:
            found.append(_profiled(max(mine, key=_work), record, kernel, now))
    return tuple(found)


def stall_drawings(profiles: Sequence[Profiles], kernels: Collection[str] = ()) -> Iterator[Drawing]:
    """Yield a chart of warp stalls for each record that measured them, at the largest size of the kernels in it.

    It shows the libraries and the kernels in `kernels`, by default all. If none of the named kernels was measured,
    there is no chart.
    """
    for record in profiles:
        known = [
            one for one in record.profiles
            if one.kernels and one.stall_cycles and (one.is_library or not kernels or one.name in kernels)
        ]  # fmt: skip
        ours = [one for one in known if not one.is_library]
        if not known or (kernels and not ours):
            continue
        largest = max(ours or known, key=_work).size
        spec = specification(stall_chart(stall_bars([one for one in known if one.size == largest])))
        caption = f"{_origin(record, known[0])}. The kernels' sections explain each state."
        bare = {name: value for name, value in spec.items() if name != "title"}
        yield Drawing(f"What warps wait for at {short_size(largest)}", caption, bare, "curves")


def _profiled(profile: Profile, record: Profiles, kernel: Kernel | None, now: Mapping[str, Any] | None) -> Profiled:
    library = record.baseline(profile)
    digest = str(profile.facts.get("code_sha256") or "")
    rungs = () if kernel is None else ladder(kernel.op, "cuda")
    return Profiled(
        where=f"{_origin(record, profile)}, at {short_size(profile.size)}",
        other_code=digest[:12] if now is not None and digest != now["code_sha256"] else "",
        stalls=_stalls(profile, library), figures=_figures(profile, library),
        findings=stall_findings(profile, kernel, rungs), doubts=tuple(dict.fromkeys(profile.inexact.values())),
    )  # fmt: skip


def _origin(record: Profiles, profile: Profile) -> str:
    if profile.origin == NCU:
        return f"By Nsight Compute ({record.profiler}) on {record.device}, {record.time_utc[:10]}"
    return f"Counted on {profile.origin or record.device}, not timed"


def _stalls(profile: Profile, library: Profile | None) -> Table:
    theirs = {one.stall.key: one.share for one in waiting(library)} if library is not None else {}
    rows = tuple(
        (
            Cell(one.stall.name), Cell(plain(one.cycles, 3)), Cell(f"{one.share:.1%}"), Cell(plain(one.cost, 3)),
            *([Cell(f"{theirs.get(one.stall.key, 0.0):.1%}")] if library is not None else []), Cell(one.stall.meaning),
        )
        for one in waiting(profile)
        if max(one.share, theirs.get(one.stall.key, 0.0)) >= _LEAST_SHARE
    )  # fmt: skip
    beside_it = (f"{library.name}: of a warp's time",) if library is not None else ()
    headings = ("state", "cycles / instruction", "of a warp's time", "cycles lost, percent", *beside_it, "meaning")
    return Table("What its warps wait for, the costliest first", headings, rows, frozenset({0, len(headings) - 1}))


def _figures(profile: Profile, library: Profile | None) -> Table:
    rows = tuple(
        (Cell(figure.group), Cell(figure.name), Cell(figure.text), *([Cell(other)] if library is not None else []))
        for figure, other in beside(profile, library)
    )
    names = (profile.name, library.name) if library is not None else (profile.name,)
    return Table("Figures of the profiler", ("group", "figure", *names), rows, frozenset({0, 1}))


def _work(profile: Profile) -> float:
    return size_cell(profile.size).key or 0.0
