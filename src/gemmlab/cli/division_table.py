"""Print how threads divide C: the jobs, rectangles of C, as a grid, or as a list if a row has many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmlab.cli.console import add_row, plain_table, table_console

if TYPE_CHECKING:
    from gemmlab.codegen.thread_division import ThreadDivision
    from gemmlab.instruments.dividing import Divided

_MOST_ACROSS = 8


def print_division(divided: Divided) -> None:
    """Print how threads divide C, in sentences; then the jobs, unless one thread computes all of C."""
    console = table_console()
    console.print(f"\n{divided.kernel} at {divided.size} on {divided.most_threads} threads of a CPU", highlight=False)
    for line in divided.lines:
        console.print(f"  {line}", highlight=False)
    found = divided.division
    if len(found.rectangles) > 1:
        console.print()
        if found.across <= _MOST_ACROSS:
            _print_drawing(found)
        else:
            _print_list(divided)


def _print_drawing(found: ThreadDivision) -> None:
    jobs = {(one.row, one.col): job for job, one in enumerate(found.rectangles)}
    columns = sorted({(one.col, one.cols) for one in found.rectangles})
    table = plain_table(["rows of C", *(f"columns {_range(*each)}" for each in columns)], 1)
    for row, rows in sorted({(one.row, one.rows) for one in found.rectangles}):
        add_row(table, [_range(row, rows), *(f"job {jobs[row, col]}" for col, _cols in columns)])
    table_console().print(table)


def _print_list(divided: Divided) -> None:
    table = plain_table(["job", "rows of C", "columns of C"], 0)
    for job, one in enumerate(divided.division.rectangles):
        add_row(table, [str(job), _range(one.row, one.rows), _range(one.col, one.cols)])
    table_console().print(table)


def _range(first: int, count: int) -> str:
    return f"{first} to {first + count - 1}"
