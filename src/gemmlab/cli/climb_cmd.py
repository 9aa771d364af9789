"""`gemmlab climb`: verify and time the ladder on this machine, beside gemmlab's own call and peer libraries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gemmlab.cli.answer import CsvFlag, answer_form, print_document
from gemmlab.core.errors import WrongResultError

if TYPE_CHECKING:
    from gemmlab.instruments.climb_result import ClimbPart


def climb(
    op: Annotated[str, typer.Option(help="Operation whose ladder to climb.")] = "gemm",
    device: Annotated[
        str | None,
        typer.Option(
            help="cpu, cuda[:N] or emulated[:sm_XX]; cuda without a GPU shows counts and recorded times. Default: the "
            "CPU's ladder, then the GPU's: timed on a GPU, or counted on an emulated one."
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the threaded rung; default: physical cores.")] = None,
    peers: Annotated[
        str,
        typer.Option(
            help="Libraries to compare with. On a CPU openblas[:CORETYPE|:best], numpy[...], mkl, onednn, "
            "NAME=/path/lib.so; on a GPU cublas, torch, cupy; '' for none."
        ),
    ] = "installed",
    sizes: Annotated[
        str | None,
        typer.Option(help="Sizes to choose from; each rung is timed at the largest that it finishes quickly."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the record, the SVG and the PNG.")] = Path("climb"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: rows, counts, notes, files.")] = False,
    as_csv: CsvFlag = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes, fewer rounds: a quick look, not a measurement.")
    ] = False,
) -> None:
    """Climb the ladder: verify and time every rung beside the peers."""
    from gemmlab.cli.climb_table import live_steps
    from gemmlab.instruments.climbing import climb as climb_ladder

    form = answer_form(as_json=as_json, as_csv=as_csv)
    with live_steps() as show:
        done = climb_ladder(
            op, device=device, threads=threads, peers=peers, sizes=sizes, quick=quick, out=out, progress=show
        )
    if not print_document(done, form):
        for part in done.parts:
            _print(part)
        typer.echo("\nWritten: " + ", ".join(map(str, done.files)))
    if done.wrong:
        raise WrongResultError("\n".join(done.wrong))


def _print(part: ClimbPart) -> None:
    from gemmlab.cli.climb_table import print_ideas, print_notes, print_recorded, print_times
    from gemmlab.cli.counts import print_counts
    from gemmlab.cli.predictions import print_predictions

    typer.echo(f"\n{part.record.device.get('name')}")
    if part.times:
        print_times(part.times)
        print_notes(part.record, part.times, part.notes)
    else:
        print_counts(part.record, part.counts)
        for note in part.notes:
            typer.echo(f"  note: {note}")
        print_ideas(part.counts)
        print_predictions(part.predicted, part.unpredicted)
    if part.elsewhere is not None:
        print_recorded(part.elsewhere)


def register(app: typer.Typer) -> None:
    app.command("climb")(climb)
