"""Print explanations of kernels as text on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gemmlab.analysis.explanation import Explanation
from gemmlab.analysis.figures import figures, side_by_side
from gemmlab.analysis.run_verdict import run_verdict
from gemmlab.core.numerals import plain
from gemmlab.core.words import assignments, counted

_ROWS = 12
"""The most rows of the table of memory accesses."""


@dataclass(frozen=True, slots=True)
class Page:
    """A printer of explanations on `console`."""

    console: Console

    def whole(self, explained: Explanation) -> None:
        """Print everything about one kernel: after its title, first the findings with advice."""
        self._title(explained)
        self._findings(explained)
        self._heading("Occupancy")
        found = explained.occupancy.found
        for step in explained.occupancy.steps:
            self._line(f"  {step}")
        blocks = counted(found.blocks, "block")
        self._line(
            f"  -> {blocks}, {found.warps} of {found.warps_per_sm} warps ({found.fraction:.0%}): "
            f"{' and '.join(explained.occupancy.binding)}{_next(explained)}"
        )
        self._roofline(explained)
        self._accesses(explained)
        if explained.issue_words:
            self._heading("Issue slots of the main loop, an iteration and warp")
            for line in explained.issue_words:
                self._line(f"  {line}")
        elif explained.loop is None:
            larger = "; one may at a larger one (--sizes)" if explained.subject.kernel is not None else ""
            self._line(f"\nNo loop with arithmetic ran{' at this size' if larger else ''}{larger}.")
        self._figures([(f.group, f.name, (f.text,)) for f in figures(explained)], ("",))

    def pair(self, one: Explanation, two: Explanation) -> None:
        """Print the figures of two kernels in two columns, then the findings on each."""
        self._title(one)
        self._title(two)
        rows = [(f.group, f.name, (f.text, other)) for f, other in side_by_side(one, two)]
        self._figures(rows, (one.subject.name, two.subject.name))
        for explained in (one, two):
            self._findings(explained, explained.subject.name)

    def code(self, explained: Explanation) -> None:
        """Print the main loop's instructions with stall count, yield flag and wait mask; nothing without a loop."""
        if explained.loop is None:
            return
        self._heading(f"Main loop of {explained.subject.name}: address, line, stall, yield, waits")
        for i in explained.loop.instructions:
            line = i.line[1] if i.line else ""
            asks = "-" if i.control.yield_ else "Y"
            self._line(f"  {i.address:#06x} {line:>5} {i.control.stall:>3} {asks} {i.control.wait_mask:06b}  {i.text}")

    def _title(self, explained: Explanation) -> None:
        subject = explained.subject
        config = assignments(subject.config)
        self._line(f"{subject.name} {config}".strip())
        self._line(f"  {run_verdict(explained)}")
        self._line(
            f"  {subject.arch} code ({subject.artifact.compiler}) on {subject.model.name}; counted at "
            f"{subject.size.label} on {subject.counters.origin}, not timed"
        )
        for trait in subject.traits:
            self._line(f"  it {trait}")

    def _findings(self, explained: Explanation, name: str = "") -> None:
        self._heading(f"Findings{name and f' on {name}'}, the costliest first")
        for hazard in explained.subject.hazards:
            self._line(f"  !  {hazard.explain()}")
        for number, finding in enumerate(explained.findings, 1):
            rung = f" Shown by: {finding.rung}." if finding.rung else ""
            self._line(f"{number:>3}. {finding.text}")
            self._line(f"     {finding.attempt}{rung} {finding.gain}")
        if not explained.findings:
            self._line("  none of the known ones")

    def _roofline(self, explained: Explanation) -> None:
        roofline, unit = explained.roofline, explained.subject.unit
        self._heading(f"Roofline on {roofline.model}")
        if explained.subject.arithmetic:
            self._arithmetic_roofline(explained)
        else:
            levels = [
                (level.name, _range(level.bytes_least, level.bytes_most), f"{level.gbs:,.0f}", level.how)
                for level in roofline.levels
            ]
            self._table(("", "bytes", "peak GB/s", ""), levels, left=(0, 3))
        self._line(f"  -> bound by {roofline.bound_by}: {roofline.bound:,.0f} {unit} at most")
        if roofline.doubtful:
            self._line(f"     less, if few accesses hit the caches: {', '.join(roofline.doubtful)}")

    def _arithmetic_roofline(self, explained: Explanation) -> None:
        roofline = explained.roofline
        rows = [
            (level.name, _range(level.bytes_least, level.bytes_most),
             _range(level.intensity_least, level.intensity_most), f"{level.gbs:,.0f}",
             _range(level.gflops_least, level.gflops_most), level.how)
            for level in roofline.levels
        ]  # fmt: skip
        inside = (roofline.inside_by, "", "", "", f"{roofline.inside_gflops:,.0f}",
                  f"main loop, of a peak of {roofline.peak_gflops:,.0f}")  # fmt: skip
        self._table(("", "bytes", "FLOP/B", "peak GB/s", "GFLOP/s at most", ""), [*rows, inside], left=(0, 5))

    def _accesses(self, explained: Explanation) -> None:
        rows = explained.accesses
        self._heading("Memory by place in the source")
        cells = [
            (f"{row.file}:{row.line}", row.opcode, f"{row.requests:,}",
             f"{row.sectors_per_request:.3g}" if row.sectors else "", f"{row.wavefronts:,}" if row.wavefronts else "",
             f"{row.wavefronts_ideal if row.wavefronts else row.sectors_ideal:,}", f"{row.excess:,}",
             f"{row.share:.1%}")
            for row in rows[:_ROWS]
        ]  # fmt: skip
        names = ("line", "opcode", "requests", "sectors\n/request", "wave-\nfronts", "ideal", "excess", "of L1 time")
        self._table(names, cells, left=(0, 1))
        if len(rows) > _ROWS:
            rest = sum(row.share for row in rows[_ROWS:])
            self._line(f"  and {len(rows) - _ROWS} more with {rest:.1%}")
        self._line("  Ideal and excess: wavefronts of shared memory, sectors of 32 bytes of global memory.")

    def _figures(self, rows: Iterable[tuple[str, str, Sequence[str]]], names: Sequence[str]) -> None:
        group = ""
        cells = []
        for own, name, texts in rows:
            if own != group:
                cells.append((f"\n{own.capitalize()}", *("" for _ in texts)))
                group = own
            cells.append((f"  {name}", *texts))
        self._table(("", *names), cells, left=range(1 + len(names)))

    def _table(self, names: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = ()) -> None:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=any(names))
        aligned = set(left)
        for index, name in enumerate(names):
            table.add_column(Text(name), justify="left" if index in aligned else "right")
        for row in rows:
            table.add_row(*map(Text, row))
        self.console.print(table)

    def _heading(self, text: str) -> None:
        self.console.print(Text(f"\n{text}", style="bold"))

    def _line(self, text: str) -> None:
        indent = " " * (len(text) - len(text.lstrip()) + 2)
        for line in text.split("\n"):
            self.console.print(Text("\n".join(textwrap.wrap(line, self.console.width, subsequent_indent=indent))))


def _range(low: float, high: float) -> str:
    first, last = plain(low, 3), plain(high, 3)
    return first if first == last else f"{first} to {last}"


def _next(explained: Explanation) -> str:
    """Return, in words, the registers or shared memory with which more blocks would fit; empty if neither is known."""
    report = explained.occupancy
    ways = []
    if report.next_registers is not None:
        ways.append(f"{report.next_registers} registers a thread")
    if report.next_smem is not None:
        ways.append(f"{report.next_smem:,} B of shared memory")
    return f"; more fit with {' or '.join(ways)}" if ways else ""
