"""Print profiles as text on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gemmlab.analysis.findings import Finding
from gemmlab.analysis.profile_figures import beside, overview
from gemmlab.analysis.stall_findings import issue_percent, waiting
from gemmlab.analysis.stall_reasons import STALLS
from gemmlab.cli.explain_tables import Page
from gemmlab.core.numerals import plain
from gemmlab.core.words import assignments, printable
from gemmlab.observe.profile import NCU, Profile, Profiles

_LEAST_SHARE = 0.005
"""A stall state has a row if it takes at least this fraction of a warp's time in the kernel or in the peer library."""


@dataclass(frozen=True, slots=True)
class ProfilePage(Page):
    """A printer of profiles on `console`."""

    def one(self, profiles: Profiles, profile: Profile, findings: Sequence[Finding]) -> None:
        """Print everything about one kernel at one size, stall reasons first; if it did not run, only why."""
        library = profiles.baseline(profile)
        config = assignments(dict(profile.facts.get("config", {})))
        self._heading(printable(f"{profile.name} at {profile.size} {config}".rstrip()))
        if profile.notes:
            self._line(printable(f"  {'; '.join(profile.notes)}"))
        if not profile.kernels:
            return
        self._line(f"  {_origin(profiles, profile)}")
        if library is not None:
            self._line(printable(f"  beside it {library.name}: {', '.join(dict.fromkeys(library.kernels))}"))
        self._waits(profile, library, findings)
        names = (printable(profile.name), printable(library.name) if library is not None else "")
        rows = beside(profile, library)
        self._figures([(f.group, f.name, (f.text, other) if library else (f.text,)) for f, other in rows], names)
        self._doubts(profile.inexact.values())

    def all(self, profiles: Profiles) -> None:
        """Print a table per size, with one line per kernel or library."""
        for size in dict.fromkeys(one.size for one in profiles.profiles):
            at_size = [one for one in profiles.profiles if one.size == size]
            self._heading(printable(f"At {size}: {_origin(profiles, at_size[0])}"))
            headings, rows, doubts = overview(at_size)
            waits = [_mostly(one) for one in at_size]
            shown = ["", *headings, *(["waits\nmostly for"] * any(waits))]
            names = [printable(one.name) for one in at_size]
            cells = [[name, *row, wait][: len(shown)] for name, row, wait in zip(names, rows, waits, strict=True)]
            self._table(shown, cells, left=(0, 1 + len(headings)))
            for one in at_size:
                if one.notes:
                    self._line(printable(f"  {one.name}: {'; '.join(one.notes)}"))
            self._doubts(doubts)
        self._line("Name a kernel to see all its figures, and what to try.")

    def others(self, sizes: Iterable[str]) -> None:
        """Print the sizes that have no page, if there are any."""
        if named := ", ".join(sizes):
            self._line(printable(f"There are other sizes: {named}; --sizes chooses."))

    def notes(self, profiles: Profiles) -> None:
        """Print the notes of the whole record."""
        for note in profiles.notes:
            self._line(printable(f"note: {note}"))

    def stalls(self) -> None:
        """Print the meaning, cause and remedy of every stall state."""
        self._line(
            "What a warp can be found doing between two of its instructions, by Nsight Compute's names. Each has three "
            "metrics: samples in all, samples in cycles in which the partition issued nothing (only these cost time), "
            "and cycles for each instruction that is issued."
        )
        for stall in STALLS:
            self._heading(stall.name)
            self._line(f"  {stall.meaning}")
            self._line(f"  Usually: {stall.cause}")
            self._line(f"  Try: {stall.attempt}{f' Shown by: {stall.rungs[0]}.' if stall.rungs else ''}")
            self._line(f"  {stall.metric}, the same with _not_issued, {stall.cycles}")

    def _waits(self, profile: Profile, library: Profile | None, findings: Sequence[Finding]) -> None:
        states, issued = waiting(profile), issue_percent(profile)
        if not states:
            if profile.origin != NCU:
                self._line(
                    "  Only a GPU shows what warps wait for; `gemmlab explain` says what limits a kernel by its code."
                )
            return
        self._heading("What its warps wait for, the costliest first")
        if issued is not None:
            self._line(
                f"  A partition issues an instruction in {issued:.1f} % of its cycles; better code could use the rest."
            )
        self._table(*_states(profile, library), left=(0,))
        for number, finding in enumerate(findings, 1):
            rung = f" Shown by: {finding.rung}." if finding.rung else ""
            self._line(f"{number:>3}. {finding.text}")
            self._line(f"     Try: {finding.attempt}{rung}")

    def _doubts(self, reasons: Iterable[str]) -> None:
        for reason in dict.fromkeys(reasons):
            self._line(printable(f"  ~ {reason}"))


def _origin(profiles: Profiles, profile: Profile) -> str:
    if profile.origin == NCU:
        return printable(f"by Nsight Compute ({profiles.profiler}) on {profiles.device}, {profiles.time_utc[:10]}")
    return printable(f"counted on {profile.origin or profiles.device}, not timed: exact but for what is marked ~")


def _states(profile: Profile, library: Profile | None) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the table of stall states, without rare states and columns without values."""
    theirs = {one.stall.key: one for one in waiting(library)} if library is not None else {}
    columns: dict[str, list[str]] = {}
    for one in waiting(profile):
        other = theirs.get(one.stall.key)
        if max(one.share, other.share if other else 0.0) < _LEAST_SHARE:
            continue
        cells = {
            "": f"  {one.stall.name}", "cycles\n/instruction": plain(one.cycles, 3),
            "of a\nwarp's time": f"{one.share:.1%}", "cycles lost,\npercent": plain(one.cost, 3),
            "samples": plain(one.samples, 3), "not\nissued": plain(one.not_issued, 3),
            f"{printable(library.name) if library else ''}:\nof a warp's time": f"{other.share:.1%}" if other else "",
        }  # fmt: skip
        for heading, cell in cells.items():
            columns.setdefault(heading, []).append(cell)
    shown = {heading: cells for heading, cells in columns.items() if any(cells)}
    return list(shown), [list(row) for row in zip(*shown.values(), strict=True)]


def _mostly(profile: Profile) -> str:
    worst = next((one for one in waiting(profile) if one.stall.waits), None)
    return "" if worst is None else f"{worst.stall.name} {worst.share:.0%}"
