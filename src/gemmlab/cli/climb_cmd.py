"""`gemmlab climb`: verify and time the ladder on this machine, beside the library call and the peers."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gemmlab.cli.answer import print_json
from gemmlab.cli.rungs_here import rungs_here
from gemmlab.core.errors import DeviceError, UsageError, WrongResultError
from gemmlab.devices.select import open_device

if TYPE_CHECKING:
    from gemmlab.cli.predictions import PredictedRow
    from gemmlab.core.records import Record
    from gemmlab.devices.device import Device
    from gemmlab.observe.counting import Count
    from gemmlab.results.climb_rows import ClimbRow
    from gemmlab.results.count_rows import CountRow
    from gemmlab.timing.climb import Climb

INSTALLED = "installed"
"""Value of `--peers` that stands for every installed peer."""
COUNT_BUDGET_S = 20.0
"""Seconds for counting the GPU's rungs after a CPU's climb."""


@dataclass(frozen=True, slots=True)
class _Request:
    """The settings of a climb, independent of the device."""

    op: str
    threads: int | None = None
    """Thread count; `None` for all physical cores."""
    peers: str = INSTALLED
    sizes: str | None = None
    """Sizes as text; `None` for the device's default sizes."""
    quick: bool = False
    budget_s: float = float("inf")
    """Seconds that counting may take."""

    def plan(self, device: Device) -> Climb | Count:
        """Return the plan for one device: to time its ladder, or to count it where times are meaningless."""
        from gemmlab.core.hardware import physical_cores, require_cpus
        from gemmlab.observe.counting import Count
        from gemmlab.ops.catalog import find_op
        from gemmlab.timing.climb import Climb
        from gemmlab.timing.families import family_of
        from gemmlab.timing.peers import parse_peers

        op, where = find_op(self.op), device.device_name
        family, mode = family_of(where.family, self.op), where.modes[0]
        problems = op.parse_sizes(self.sizes or family.climb_sizes)
        kernels = rungs_here(self.op, device)
        if not family.timed:
            return Count(op, device, kernels, problems, budget_s=self.budget_s)
        named = [] if self.peers == INSTALLED else parse_peers(self.peers, where, mode, self.op)
        count = physical_cores() if self.threads is None else self.threads
        require_cpus(count)
        return Climb(
            op, device, kernels, named, count if family.host_threads else 1, self.sizes or "", self.quick, mode=mode
        )


@dataclass
class ClimbResult:
    """The results of one device's ladder."""

    record: Record
    times: list[ClimbRow] = field(default_factory=list)
    counts: list[CountRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    elsewhere: Record | None = None
    """A recorded climb of the same ladder on a GPU, shown when none is here."""
    predicted: list[PredictedRow] = field(default_factory=list)
    """For a counted ladder: predicted times on a GPU."""
    unpredicted: list[str] = field(default_factory=list)
    """Notes on rungs without a prediction."""


def climb(
    op: Annotated[str, typer.Option(help="Operation whose ladder to climb.")] = "gemm",
    device: Annotated[
        str | None,
        typer.Option(
            help="cpu, cuda[:N] or emulated[:sm_XX]; cuda without a GPU shows counts and recorded times. Default: the "
            "CPU, then the GPU's ladder on the GPU, or counted on an emulated one."
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the threaded rung; default: physical cores.")] = None,
    peers: Annotated[
        str,
        typer.Option(
            help="On a CPU openblas[:CORETYPE|:best], numpy[...], mkl, onednn, NAME=/path/lib.so; "
            "on a GPU cublas, torch, cupy; '' for none."
        ),
    ] = INSTALLED,
    sizes: Annotated[str | None, typer.Option(help="Sizes to choose from; each rung takes the largest it can.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the record, the SVG and the PNG.")] = Path("climb"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: rows, counts, notes, files.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes, fewer rounds: a look, not a measurement.")
    ] = False,
) -> None:
    """Climb the ladder: verify and time every rung beside the peers."""
    from gemmlab.cli.climb_table import recorded_json
    from gemmlab.cli.predictions import rows_json
    from gemmlab.results.shipped_records import recorded_climb

    instead = _no_gpu(device) if sizes is None else ""
    first, *others = _devices("emulated" if instead else device, op)
    parts = [_Request(op, threads, INSTALLED if instead else peers, sizes, quick).plan(first)]
    # Threads, peers and sizes from the command line are for the first device alone.
    parts += [_Request(op, quick=quick, budget_s=COUNT_BUDGET_S).plan(other) for other in others]
    _make_folder(out)
    done = [_run(part, out, installed=peers == INSTALLED or part is not parts[0]) for part in parts]
    if instead:
        done[0].notes.append(f"{instead}; so the rungs were counted on {first.id}")
        done[0].elsewhere = recorded_climb(op)
    if as_json:
        recorded = done[0].elsewhere
        print_json({
            "rows": [{**asdict(row), "device": part.record.device.get("id")} for part in done for row in part.times],
            "counts": [{**asdict(row), "device": part.record.device.get("id")} for part in done for row in part.counts],
            "predicted": [row for part in done for row in rows_json(part.predicted)],
            "notes": [note for part in done for note in (*part.record.notes, *part.notes, *part.unpredicted)],
            "files": [str(path) for part in done for path in part.files],
            **({} if recorded is None else {"recorded": recorded_json(recorded)}),
        })  # fmt: skip
    else:
        for part in done:
            _print(part)
        typer.echo("\nWritten: " + ", ".join(str(path) for part in done for path in part.files))
    if wrong := [line for part in done for line in part.wrong]:
        raise WrongResultError("\n".join(wrong))


def _no_gpu(named: str | None) -> str:
    """Return why `--device cuda` cannot be opened; empty if it can, or for any other value of `--device`."""
    if named != "cuda":
        return ""
    try:
        open_device(named)
    except DeviceError as error:
        return str(error)
    return ""


def _devices(named: str | None, op: str) -> list[Device]:
    """Return the named device; without a name the CPU, and a GPU or else an emulated one for the GPU's ladder."""
    from gemmlab.kernels.catalog import ladder

    if named is not None:
        return [open_device(named)]
    devices = [open_device("cpu")]
    for name in ("cuda", "emulated") if ladder(op, "cuda") else ():
        try:
            return [*devices, open_device(name)]
        except DeviceError:
            continue
    return devices


def _run(part: Climb | Count, out: Path, *, installed: bool) -> ClimbResult:
    from gemmlab.observe.counting import Count

    family = part.device.family
    stem = out / ("climb" if family == "cpu" else f"climb-{family}")
    return _counted(part, stem) if isinstance(part, Count) else _timed(part, stem, installed=installed)


def _timed(part: Climb, stem: Path, *, installed: bool) -> ClimbResult:
    from gemmlab.cli.climb_table import live_steps
    from gemmlab.results.climb_rows import climb_rows
    from gemmlab.timing.climb import default_peers, missing_peers, run_climb

    with live_steps() as show:
        peers = list(part.peers)
        if installed:
            precisions = {kernel.precision for kernel in part.kernels}
            peers = default_peers(part.device.device_name, part.mode, part.op.name, precisions)
        record, reports = run_climb(replace(part, peers=peers, progress=show))
    rows = climb_rows(record)
    wrong = [report.explain() for report in reports if not report.passed]
    wrong += [f"{r.name} at {r.size}: outside its bound" for r in rows if r.role != "peer" and r.verified is False]
    notes = missing_peers(part.device.device_name, part.op.name) if installed else []
    return ClimbResult(record, times=rows, notes=notes, wrong=wrong, files=_write(record, stem, chart=True))


def _counted(part: Count, stem: Path) -> ClimbResult:
    from gemmlab.cli.counts import count, wrong_counts
    from gemmlab.cli.predictions import predicted_rows
    from gemmlab.results.count_rows import count_rows

    record = count(part)
    rows = count_rows(record)
    files = _write(record, stem, chart=False)
    predicted, missing = predicted_rows(record)
    return ClimbResult(
        record, counts=rows, wrong=wrong_counts(rows), files=files, predicted=predicted, unpredicted=missing
    )


def _print(part: ClimbResult) -> None:
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


def _write(record: Record, stem: Path, *, chart: bool) -> list[Path]:
    from gemmlab.core.records import save_record

    paths: list[Path] = [stem.with_suffix(f".{suffix}") for suffix in (("json", "svg", "png") if chart else ("json",))]
    try:
        save_record(record, paths[0])
        if chart:
            try:
                from gemmlab.plots.chart import save
                from gemmlab.plots.ladder import climb_chart

                save(climb_chart(record), *paths[1:])
            except ModuleNotFoundError as error:
                typer.echo(f"No chart: {error.name} is not installed; the record is written.", err=True)
                return paths[:1]
    except OSError as error:
        raise UsageError(f"cannot write to {stem.parent}: {error.strerror or error}") from error
    return paths


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror or error}") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write to the folder {folder}")


def register(app: typer.Typer) -> None:
    app.command("climb")(climb)
