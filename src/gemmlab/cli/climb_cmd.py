"""`gemmlab climb`: the ladder on this machine, rung by rung, then the library call and the peers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gemmlab.cli.check_cmd import open_device
from gemmlab.cli.console import progress_console, table_console
from gemmlab.core.errors import UsageError, WrongResultError

if TYPE_CHECKING:
    from gemmlab.core.records import Record
    from gemmlab.measure.climb import Step
    from gemmlab.measure.climb_rows import ClimbRow


@contextmanager
def _live() -> Iterator[Callable[[Step], None]]:
    """Shows steps as they come: finished rungs as lines that stay, the rest as one bar that goes."""
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False), BarColumn(24), console=progress_console(), transient=True
    )
    with bar:
        task = bar.add_task("", total=None)

        def show(step: Step) -> None:
            label = f"{step.rung:<18} {step.text}" if step.rung else step.text
            if step.final:
                bar.console.print(label)
            bar.update(task, description=label, completed=step.done, total=step.total or None)

        yield show


def _print_table(rows: list[ClimbRow]) -> None:
    from rich.table import Table
    from rich.text import Text

    from gemmlab.measure.climb_rows import digits, peer_names, short_size, times

    peers = peer_names(rows)
    headings = ["", "size", "thr", "ms", "GFLOP\n/s", "of\npeak", "x\nfirst", *(f"x\n{peer}" for peer in peers)]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(Text(heading), justify="right" if heading else "left", overflow="fold", no_wrap=not heading)
    for row in rows:
        share = "" if row.peak_share is None else f"{row.peak_share:.1%}"
        ratios = [row.to_first, *(row.to_peers.get(peer) for peer in peers)]
        cells = [row.name, short_size(row.size), str(row.threads), digits(row.time_us / 1e3), digits(row.gflops), share]
        table.add_row(*(Text(cell) for cell in (*cells, *("" if r is None else times(r) for r in ratios))))
    table_console().print(table)


def _print_notes(record: Record, rows: list[ClimbRow], notes: list[str]) -> None:
    console = table_console()
    console.print(
        "\nof peak: of the fused multiply-add peak measured in the same rounds; x: GFLOP/s to those of the first rung, "
        "and of each peer at the same size and thread count."
    )
    if len({row.size for row in rows if row.role == "rung"}) > 1:
        console.print(
            "Each rung is timed at the largest size it finishes quickly; sizes differ, so x first is no ratio of times."
        )
    console.print("\nWhy each rung is faster:")
    for row in rows:
        if row.role == "rung":
            console.print(f"  {row.name}: {row.idea}")
    console.print("\nCompared with:" if any(row.role == "peer" for row in rows) else "\nCompared with nothing.")
    for line in dict.fromkeys(f"  {row.name}: {row.about}" for row in rows if row.role in ("peer", "library call")):
        console.print(line)
    for note in (*record.notes, *notes):
        console.print(f"  note: {note}")


def _write(record: Record, folder: Path) -> list[Path]:
    from gemmlab.core.records import save_record
    from gemmlab.plots.chart import save
    from gemmlab.plots.ladder import climb_chart

    paths = [folder / f"climb.{suffix}" for suffix in ("json", "svg", "png")]
    try:
        save_record(record, paths[0])
        save(climb_chart(record), *paths[1:])
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}") from error
    return paths


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror or error}") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write to the folder {folder}")


def climb(
    op: Annotated[str, typer.Option(help="Operation whose ladder to climb.")] = "gemm",
    device: Annotated[str, typer.Option(help="Device to climb on: cpu.")] = "cpu",
    threads: Annotated[int | None, typer.Option(help="Threads of the threaded rung; default: physical cores.")] = None,
    peers: Annotated[
        str, typer.Option(help="openblas[:CORETYPE|:best], numpy[...], mkl, onednn, NAME=/path/lib.so; '' for none.")
    ] = "installed",
    sizes: Annotated[str | None, typer.Option(help="Sizes to choose from; each rung takes the largest it can.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the record, the SVG and the PNG.")] = Path("climb"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: rows, notes, files.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes, fewer rounds: a look, not a measurement.")
    ] = False,
) -> None:
    """Climb the ladder: verify and time every rung beside the peers."""
    from gemmlab.core.hardware import physical_cores
    from gemmlab.kernels.catalog import ladder
    from gemmlab.measure.climb import SIZES, Climb, default_peers, missing_peers, run_climb
    from gemmlab.measure.climb_rows import climb_rows
    from gemmlab.measure.peers import parse_peers, worker_cpus
    from gemmlab.ops.catalog import find_op

    where, what = open_device(device), find_op(op)
    what.parse_sizes(sizes or SIZES)
    named = None if peers == "installed" else parse_peers(peers)
    count = physical_cores() if threads is None else threads
    worker_cpus(count)
    _make_folder(out)
    with _live() as show:
        record, reports = run_climb(
            Climb(
                what, where, ladder(op, device), default_peers() if named is None else named,
                count, sizes or SIZES, quick, show,
            )
        )  # fmt: skip
    paths = _write(record, out)
    rows = climb_rows(record)
    notes = missing_peers() if named is None else []
    if as_json:
        answer = {"rows": [asdict(row) for row in rows],
                  "notes": [*record.notes, *notes], "files": [str(path) for path in paths]}  # fmt: skip
        typer.echo(json.dumps(answer, indent=2))
    else:
        _print_table(rows)
        _print_notes(record, rows, notes)
        typer.echo("\nWritten: " + ", ".join(str(path) for path in paths))
    wrong = [report.explain() for report in reports if not report.passed]
    wrong += [f"{r.name} at {r.size}: outside its bound" for r in rows if r.role != "peer" and r.verified is False]
    if wrong:
        raise WrongResultError("\n".join(wrong))


def register(app: typer.Typer) -> None:
    app.command("climb")(climb)
