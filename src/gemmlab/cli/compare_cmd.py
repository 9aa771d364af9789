"""`gemmlab compare`: compare two records and say what became faster, slower or wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gemmlab.cli.answer import CsvFlag, answer_form, print_document
from gemmlab.core.errors import UsageError, WrongResultError
from gemmlab.core.words import counted

if TYPE_CHECKING:
    from gemmlab.results.comparison import Case, Comparison

_MOST_NAMED = 3


def compare(
    old: Annotated[Path, typer.Argument(help="A record, as bench --save and climb write them.")],
    new: Annotated[Path, typer.Argument(help="A later record.")],
    threshold: Annotated[
        float | None,
        typer.Option(metavar="PERCENT", help="A difference in speed below this counts as none. Default: 3."),
    ] = None,
    relative_to: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Compare speeds divided by that of this contestant, timed in turns: cublas, openblas, probe.",
        ),
    ] = "",
    other_device: Annotated[bool, typer.Option("--other-device", help="Compare though the devices differ.")] = False,
    ignore_same_code: Annotated[
        bool, typer.Option("--ignore-same-code", help="A slower time of the same machine code is no regression.")
    ] = False,
    require_all: Annotated[
        bool, typer.Option("--require-all", help="A case of gemmlab's that only OLD has is a regression.")
    ] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Print the cases that stayed the same, too.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the ratios to this .svg, .png or .html file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")] = False,
    as_csv: CsvFlag = False,
) -> None:
    """Compare two records case by case, from their samples.

    Exits with 1 if a kernel of gemmlab, gemmlab.gemm or gemmlab.sum is slower with certainty, or has become wrong.
    """
    from gemmlab.instruments.comparing import compare as judge
    from gemmlab.kernels.aliases import read_record
    from gemmlab.results.comparison import THRESHOLD, missing_cases

    form = answer_form(as_json=as_json, as_csv=as_csv)
    before, after = read_record(old), read_record(new)
    found = judge(
        before, after, threshold=THRESHOLD if threshold is None else threshold, relative_to=relative_to,
        other_device=other_device, ignore_same_code=ignore_same_code,
    )  # fmt: skip
    if plot is not None:
        _draw(found, plot)
    if not print_document(found, form):
        from gemmlab.cli.compare_tables import print_comparison

        print_comparison(found, before, after, everything=show_all)
    lost = [f"{key.contestant} at {key.label} is gone" for key in missing_cases(before, found)] if require_all else []
    failures = [*map(_words, found.regressions), *lost]
    if failures:
        more = f" and {len(failures) - _MOST_NAMED} more" if len(failures) > _MOST_NAMED else ""
        raise WrongResultError(f"{counted(len(failures), 'regression')}: {'; '.join(failures[:_MOST_NAMED])}{more}")


def _words(case: Case) -> str:
    where = f"{case.key.contestant} at {case.key.label}, {counted(case.key.threads, 'thread')}"
    ratio = case.ratio
    return f"{where}: {case.verdict}, {ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f}) times as fast"


def _draw(found: Comparison, path: Path) -> None:
    from gemmlab.plots.chart import save
    from gemmlab.plots.comparison_chart import comparison_chart

    try:
        save(comparison_chart(found), path)
    except OSError as error:
        raise UsageError(f"cannot write the chart {path}: {error.strerror or error}") from error


def register(app: typer.Typer) -> None:
    app.command("compare")(compare)
