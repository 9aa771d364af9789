"""Print the outcome of `gemmlab check`: reports and errors as JSON, CSV or a table, the wrong elements below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from gemmlab.cli.answer import Form, print_document

if TYPE_CHECKING:
    from gemmlab.instruments.check_result import CheckResult

COLUMNS = """
  hazards      what a kernel must not do, right or wrong: the emulator notices it; elsewhere only writes outside show
  padded       cases in which rows lie further apart than they are long (ld > columns)
  error/bound  the largest error of an element / what {precisions} allows it; above 1 the kernel is wrong
  error/|c|/K  no verdict: the largest relative error / K, as articles test it; it may be large where a sum is near 0"""
"""The meaning of some columns, printed below the table; `{precisions}` stands for those of the kernels."""
_MOST_IN_FULL = 1e6
"""Ratio of an error to its bound from which the ratio is printed with an exponent; below, with three decimals."""


def answer(checked: CheckResult, form: Form) -> None:
    """Print the result as JSON, CSV or text, as `form` says."""
    if not print_document(checked, form):
        _show(checked)


def _show(checked: CheckResult) -> None:
    from rich.table import Table

    from gemmlab.cli.console import table_console
    from gemmlab.instruments.check_result import NOT_RUN, hazards, stopped

    for report in checked.reports:
        if not report.passed:
            typer.echo(report.headline())
    table = Table(box=None, pad_edge=False, header_style="bold")
    words = ("kernel", "result", "hazards")
    for heading in (*words, "cases", "padded", "threads", "error/bound", "error/|c|/K", "seconds"):
        table.add_column(heading, justify="left" if heading in words else "right")
    for report in checked.reports:
        worst = report.worst_ratio
        ratio = f"{worst:.3f}" if worst < _MOST_IN_FULL else f"{worst:.1e}"
        measures = (ratio, f"{report.source_error:.1e}", f"{report.seconds:.1f}")
        numbers = (str(report.cases), str(report.padded), str(report.threads), *measures)
        table.add_row(report.subject, report.result.upper(), hazards(report) or "-", *numbers)
    for name, error in checked.errors.items():
        table.add_row(name, stopped(error), "", "", "", "", "", "", "")
    for name in checked.not_checked:
        table.add_row(name, NOT_RUN, "", "", "", "", "", "", "")
    table_console().print(table)
    if checked.reports:
        precisions = dict.fromkeys(report.precision for report in checked.reports)
        typer.echo(COLUMNS.format(precisions=" or ".join(precisions)))
    for report in checked.reports:
        if not report.passed:
            typer.echo("\n" + report.details())
            continue
        for remark in report.remarks:
            typer.echo(f"{report.subject}: {remark[2:]}")
    for name, error in checked.errors.items():
        typer.echo(f"\n{name}: {error}")
    if checked.not_checked:
        typer.echo(f"\nNot checked, because the process had to end: {', '.join(checked.not_checked)}")
