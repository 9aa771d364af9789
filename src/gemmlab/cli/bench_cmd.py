"""`gemmlab bench`: the library call, or kernels, timed against the libraries a user would pick instead."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gemmlab.cli.check_cmd import open_device
from gemmlab.cli.console import progress_console, table_console
from gemmlab.core.errors import UsageError, WrongResultError

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from gemmlab.core.records import Record
    from gemmlab.devices.device import Device
    from gemmlab.measure.bench import Plan, Progress
    from gemmlab.measure.summary import Row, Summary, Verdict

DEFAULT_SIZES = "256,512,1024"
REDRAW_S = 0.3


def bench(
    kernels: Annotated[
        list[str] | None, typer.Argument(metavar="[KERNEL]...", help="Kernels by id; without any, gemmlab.gemm itself.")
    ] = None,
    op: Annotated[str, typer.Option(help="Operation.")] = "gemm",
    sizes: Annotated[str, typer.Option(help="256, 256,512, 256:4096:128, MxNxK.")] = DEFAULT_SIZES,
    peers: Annotated[
        str, typer.Option(help="openblas[:CORETYPE|:best], numpy[...], mkl, onednn, NAME=/path/lib.so; none.")
    ] = "installed",
    threads: Annotated[str, typer.Option(help="Thread counts, as 1,2.")] = "1",
    rounds: Annotated[int, typer.Option(help="Interleaved rounds in each process.")] = 15,
    processes: Annotated[int, typer.Option(help="Fresh processes of every contestant.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the data and of the order of turns.")] = 0,
    timeout: Annotated[
        float, typer.Option(min=1.0, help="Seconds until a contestant that hangs is left behind.")
    ] = 300.0,
    verify: Annotated[bool, typer.Option(help="Compare every result with the float64 reference first.")] = True,
    device: Annotated[str, typer.Option(help="Where to run.")] = "cpu",
    target: Annotated[
        float | None, typer.Option(help="Exit 1 unless the geometric mean against the fastest peer reaches this.")
    ] = None,
    floor: Annotated[
        float | None, typer.Option(help="Exit 1 if a size is surely (95 %) below this ratio to the fastest peer.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print record and summary as JSON, nothing else.")] = False,
    save: Annotated[Path | None, typer.Option(help="Write the record to this file.")] = None,
) -> None:
    """Time the library call or kernels against peers, in turns, every sample kept."""
    from gemmlab.core.records import save_record, to_json
    from gemmlab.measure.bench import run_bench
    from gemmlab.measure.summary import judge, summarise

    target_device = open_device(device)
    if save is not None and not save.resolve().parent.is_dir():
        raise UsageError(f"--save {save}: no folder {save.parent}")
    plan = _plan(kernels or [], op, sizes, peers, threads, rounds, processes, seed, timeout, verify)
    with _display() as bar:
        record = run_bench(plan, device=_describe(target_device), progress=_reporter(bar))
    if save is not None:
        save_record(record, save)
    summary = summarise(record)
    judged = target is not None or floor is not None
    verdict = judge(summary, target or 0.0, floor or 0.0) if judged else None
    if as_json:
        extra = {} if verdict is None else {"verdict": {"passed": verdict.passed, "failures": list(verdict.failures)}}
        typer.echo(json.dumps({"record": to_json(record), "summary": summary.to_json(), **extra}, allow_nan=False))
    else:
        _print_tables(record, summary, verdict)
    _fail_if_wrong(record, summary, verdict)


def _plan(
    kernels: list[str], op: str, sizes: str, peers: str, threads: str,
    rounds: int, processes: int, seed: int, timeout_s: float, verify: bool,
) -> Plan:  # fmt: skip
    from gemmlab.measure.bench import Plan
    from gemmlab.measure.peers import parse_contestant, parse_peers
    from gemmlab.measure.turns import Timing
    from gemmlab.ops.catalog import find_op

    operation = find_op(op)
    ours = [parse_contestant(f"kernel:{kernel}") for kernel in kernels] or [parse_contestant("gemmlab")]
    return Plan(
        op=operation, problems=operation.parse_sizes(sizes), contestants=[*ours, *parse_peers(peers)],
        threads=_parse_threads(threads), rounds=rounds, processes=processes, seed=seed, verify=verify,
        timing=Timing(timeout_s=timeout_s),
    )  # fmt: skip


def _parse_threads(text: str) -> list[int]:
    counts = []
    for part in text.split(","):
        if not (part.strip().isascii() and part.strip().isdigit()) or int(part) < 1:
            raise UsageError(f"--threads {text!r}: {part.strip()!r} is not a whole number of at least 1")
        counts.append(int(part))
    return list(dict.fromkeys(counts))


def _describe(device: Device) -> dict[str, Any]:
    info = device.describe()
    return {"id": info.id, "name": info.name, "facts": dict(info.facts)}


def _display() -> AbstractContextManager[Bar | None]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = progress_console()
    if not console.is_terminal:
        return nullcontext()
    return Progress(
        BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False), console=console,
        transient=True, auto_refresh=False,
    )  # fmt: skip


def _reporter(bar: Bar | None) -> Callable[[Progress], None]:
    if bar is None:
        return lambda _progress: None
    task = bar.add_task("starting")
    drawn = -math.inf

    def report(progress: Progress) -> None:
        # Drawn between turns and seldom: a thread that draws at its own times would disturb what is measured.
        nonlocal drawn
        now = time.monotonic()
        if now - drawn >= REDRAW_S:
            drawn = now
            bar.update(task, completed=progress.done, total=progress.total, description=progress.text[:100])
            bar.refresh()

    return report


def _print_tables(record: Record, summary: Summary, verdict: Verdict | None) -> None:
    from rich.table import Table
    from rich.text import Text

    console = table_console()
    console.print(_contestants_table(record))
    console.print()
    peers = list(dict.fromkeys(row.contestant for row in summary.rows if row.role == "peer"))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("size", "threads", "contestant", "time us", "IQR", "GFLOP/s", "of peak", "result"):
        table.add_column(heading, justify="left" if heading in ("contestant", "result") else "right")
    for peer in peers:
        table.add_column(f"/ {peer}", justify="right")
    for row in summary.rows:
        table.add_row(*(Text(cell) for cell in _cells(row, peers)))
    console.print(table)
    if summary.means:
        console.print("\nGeometric mean of speed ratios (95 % interval):")
    for mean in summary.means:
        ratio = mean.ratio
        console.print(
            f"  {mean.contestant} / {mean.peer}, {mean.threads} threads, {mean.problems} sizes: "
            f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})",
        )  # fmt: skip
    for note in _notes(record):
        console.print(f"note: {note}")
    if verdict is not None:
        console.print("targets met" if verdict.passed else "targets missed:")
        for failure in verdict.failures:
            console.print(f"  {failure}")


def _contestants_table(record: Record) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("contestant", "library", "version", "core type", "thread runtime"):
        table.add_column(heading, overflow="fold")
    facts = {result.contestant: result.facts for result in record.results if result.facts.get("role") != "peak"}
    for name, known in facts.items():
        cells = [str(known.get(key) or "") for key in ("library", "version", "core_type", "thread_runtime")]
        table.add_row(*(Text(cell) for cell in (name, *cells)))
    return table


def _cells(row: Row, peers: list[str]) -> list[str]:
    share = "" if row.peak_share is None else f"{row.peak_share:.1%}"
    result = {True: "PASS", False: "FAIL", None: "unchecked"}[row.verified]
    cells = [
        row.label, str(row.threads), row.contestant, f"{row.median_us:.4g}", f"{row.iqr_us / row.median_us:.1%}",
        f"{row.gflops:.4g}", share, result,
    ]  # fmt: skip
    for peer in peers:
        ratio = row.ratios.get(peer)
        mark = "*" if peer == row.fastest else ""
        cells.append("" if ratio is None else f"{ratio.value:.3f}{mark} ({ratio.low:.3f}-{ratio.high:.3f})")
    return cells


def _notes(record: Record) -> list[str]:
    notes = list(record.notes)
    for result in record.results:
        notes += [f"{result.contestant} at {result.label}: {note}" for note in result.notes]
    return list(dict.fromkeys(notes))


def _fail_if_wrong(record: Record, summary: Summary, verdict: Verdict | None) -> None:
    from gemmlab.measure.summary import OURS

    wrong = [f"{row.contestant} at {row.label}" for row in summary.rows if row.role in OURS and row.verified is False]
    if wrong:
        raise WrongResultError(f"wrong result: {', '.join(wrong)}")
    if not any(row.role in OURS for row in summary.rows):
        raise WrongResultError(f"only peers could be timed: {'; '.join(_notes(record))}")
    if verdict is not None and not verdict.passed:
        raise WrongResultError(f"{len(verdict.failures)} targets missed: {verdict.failures[0]}")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("bench")(bench)
