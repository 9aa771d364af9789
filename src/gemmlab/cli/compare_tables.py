"""Print the tables of `gemmlab compare`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from gemmlab.cli.console import add_row, plain_table, table_console
from gemmlab.core.numerals import plain
from gemmlab.core.words import counted
from gemmlab.results.climb_rows import short_size
from gemmlab.results.comparison import AMBIGUOUS, FASTER, MENDED, SAME, SLOWER, WRONG

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gemmlab.core.records import Record
    from gemmlab.core.stats import Ratio
    from gemmlab.results.comparison import Case, Comparison
    from gemmlab.results.record_cases import Key

_ORDER = (WRONG, SLOWER, MENDED, FASTER, AMBIGUOUS, SAME)
_CODE = {True: "same", False: "other", None: ""}
_MOST_LISTED = 8


def print_comparison(found: Comparison, old: Record, new: Record, *, everything: bool) -> None:
    """Print the comparison on standard output, the most important cases first.

    Unless `everything`, cases that stayed the same are counted and not listed.
    """
    console = table_console()
    for name, record in (("OLD", old), ("NEW", new)):
        environment = record.environment
        when = str(environment.get("time_utc", ""))[:16]
        console.print(f"{name}: {record.device.get('name')}, {when}, gemmlab {environment.get('gemmlab', '?')}")
    for warning in found.warnings:
        console.print(f"warning: {warning}")
    shown = sorted(
        (case for case in found.cases if everything or case.verdict != SAME),
        key=lambda case: (_ORDER.index(case.verdict), not case.regression, case.ratio.value),
    )
    if shown:
        console.print()
        console.print(_cases(shown, found.relative_to))
    counts = Counter(case.verdict for case in found.cases)
    console.print()
    console.print(", ".join(f"{counts[verdict]} {verdict}" for verdict in _ORDER if counts[verdict]))
    if found.only_old or found.only_new:
        only = counted(len(found.only_old), "case")
        console.print(f"without a partner: {only} of OLD, {len(found.only_new):,} of NEW")
    _print_means(console, found)
    _print_keys(console, "only in OLD", found.only_old)
    _print_keys(console, "only in NEW", found.only_new)
    _print_keys(console, f"left out, without {found.relative_to} beside them", found.without_reference)
    for line in _legend(found, counts):
        console.print(line)


def _cases(cases: Sequence[Case], relative_to: str) -> Table:
    # `!` marks the regressions that the exit code reports; a peer that became slower is shown without it.
    heading = f"x OLD,\nbeside {relative_to}" if relative_to else "x OLD"
    table = plain_table(("", "contestant", "size", "thr", "OLD ms", "NEW ms", heading, "95 %", "code", ""), texts=2)
    for case in cases:
        key, ratio = case.key, case.ratio
        add_row(
            table,
            (
                f"{case.verdict}{'!' * case.regression}", key.contestant.removeprefix("kernel:"), short_size(key.label),
                str(key.threads), plain(case.old_us / 1e3), plain(case.new_us / 1e3), f"{ratio.value:.3f}",
                f"{ratio.low:.3f}-{ratio.high:.3f}", _CODE[case.same_code], "; ".join(case.notes),
            ),
        )  # fmt: skip
    return table


def _print_means(console: Console, found: Comparison) -> None:
    means = [mean for mean in found.means if mean.problems > 1]
    if not means:
        return
    console.print("\nGeometric mean of NEW's speed divided by OLD's (95 % interval):")
    for mean in means:
        own = ", by itself" if mean.role == "reference" else ""
        name = mean.contestant.removeprefix("kernel:")
        console.print(f"  {name}, {counted(mean.threads, 'thread')}, {mean.problems} sizes{own}: {_words(mean.ratio)}")


def _print_keys(console: Console, what: str, keys: Sequence[Key]) -> None:
    if not keys:
        return
    sizes: dict[str, list[str]] = {}
    for key in keys:
        sizes.setdefault(key.contestant.removeprefix("kernel:"), []).append(short_size(key.label))
    console.print(f"\n{what}:")
    for name, labels in islice(sizes.items(), _MOST_LISTED):
        console.print(f"  {name}: {_first(list(dict.fromkeys(labels)))}")
    if len(sizes) > _MOST_LISTED:
        console.print(f"  and {counted(len(sizes) - _MOST_LISTED, 'more contestant')} (--json names all)")


def _first(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _MOST_LISTED} more" if len(labels) > _MOST_LISTED else ""
    return ", ".join(labels[:_MOST_LISTED]) + more


def _legend(found: Comparison, counts: Counter[str]) -> list[str]:
    limit = f"{found.threshold:g} %"
    verdicts = f"slower, faster: with 95 % certainty by more than {limit}; same: with 95 % certainty by less"
    lines = [f"\nx OLD: NEW's speed divided by OLD's. {verdicts}."]
    if counts[AMBIGUOUS]:
        lines.append(
            "ambiguous: none of these is certain; more rounds and processes narrow the intervals, "
            "--threshold sets another limit."
        )
    if found.regressions:
        lines.append("!: a regression.")
    return lines


def _words(ratio: Ratio) -> str:
    return f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
