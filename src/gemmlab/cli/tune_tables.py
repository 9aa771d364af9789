"""Print the outcome of a search: the fastest configurations, those that cannot win, and each parameter's effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmlab.cli.console import add_row, plain_table, table_console
from gemmlab.core.numerals import plain
from gemmlab.core.words import assignments, counted

if TYPE_CHECKING:
    from gemmlab.results.sensitivity import Sensitivity
    from gemmlab.tuning.session import Row, Tuning

MOST_ROWS, MOST_FAULTS, MOST_PAIRS = 8, 5, 6


def print_tuning(found: Tuning) -> None:
    """Print the fastest configurations of a search, its end, its faults, and the effect of each parameter."""
    console = table_console()
    what = "predicted, not measured" if found.predicted else "measured"
    console.print(f"\n{found.kernel} at {found.size} on {found.device}, {what}")
    for trait in found.traits:
        console.print(f"  it {trait}")
    shown = [found.best, *(row for row in found.rows if row is not found.best)][:MOST_ROWS]
    lines = [_cells(row, found.best, "") for row in shown]
    if found.default is not None and found.default not in shown:
        lines.append(_cells(found.default, found.best, " (default)"))
    headings = ["configuration", "us", "x best", "turns", "registers", "blocks/SM"]
    filled = [at for at in range(len(headings)) if any(line[at] for line in lines)]
    table = plain_table([headings[at] for at in filled], 1)
    for line in lines:
        add_row(table, [line[at] for at in filled])
    console.print(table)
    console.print(end_of(found))
    for text, fault in list(found.faults.items())[:MOST_FAULTS]:
        console.print(f"  cannot win: {text}: {' '.join(fault.split())[:160]}")
    if len(found.faults) > MOST_FAULTS:
        console.print(f"  and {len(found.faults) - MOST_FAULTS} more that cannot win")
    print_sensitivity(found.sensitivity)


def end_of(found: Tuning) -> str:
    """Return a sentence with the numbers of tried and left configurations, and the reason if some are left."""
    left = found.legal - found.tried
    if not left:
        return f"all of {counted(found.legal, 'legal configuration')} tried, in {found.seconds:.1f} s"
    text = f"{found.tried:,} of {counted(found.legal, 'legal configuration')} tried, {left:,} left"
    more = "a larger --budget continues from here"
    if found.seconds >= found.budget_s:
        return f"{text}: the budget of {found.budget_s:g} s ended; {more}"
    return (
        f"{text}, in {found.seconds:.1f} s of the budget of {found.budget_s:g} s.\nThe rest of it was kept for "
        f"timing the fastest ones again and the neighbours of the best, and was not all needed; {more}"
    )


def print_sensitivity(found: Sensitivity) -> None:
    """Print the effect of each single change of a parameter, and the fastest of the changes of two parameters."""
    if not found.single:
        return
    console = table_console()
    console.print(f"\nAround {assignments(found.best)}:")
    for change in found.single:
        console.print(f"  {change.text}{'' if not change.reasons else ': ' + '; '.join(change.reasons)}")
    pairs = sorted(found.pairs, key=lambda change: change.ratio)[:MOST_PAIRS]
    if pairs:
        console.print("pairs of parameters that were tried, the fastest first:")
    for change in pairs:
        console.print(f"  {change.text}")


def _cells(row: Row, best: Row, note: str) -> list[str]:
    registers, blocks = row.facts.get("registers"), row.facts.get("blocks_per_sm")
    return [
        assignments(row.config) + note, plain(row.us), f"{row.us / best.us:.3f}", str(row.turns),
        "" if registers is None else f"{registers:.0f}", "" if blocks is None else f"{blocks:.0f}",
    ]  # fmt: skip
