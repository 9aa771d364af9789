"""`gemmlab.climb`: verify and time the ladder on this machine, beside gemmlab's own call and the peers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.log import notice
from gemmlab.core.records import Record, save_record
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.instruments.call_arguments import Sizes, size_text
from gemmlab.instruments.climb_request import INSTALLED, ClimbRequest
from gemmlab.instruments.climb_result import ClimbPart, ClimbResult
from gemmlab.instruments.predicted_rows import predicted_rows
from gemmlab.kernels.catalog import ladder
from gemmlab.observe.counting import Count, count_kernels
from gemmlab.results.climb_rows import climb_rows
from gemmlab.results.count_rows import count_rows, wrong_counts
from gemmlab.results.shipped_records import recorded_climb
from gemmlab.timing.climb import Climb, Step, default_peers, missing_peers, run_climb

COUNT_BUDGET_S = 20.0
"""Seconds after which no further rung of the GPU's ladder is counted, if a CPU's climb came first."""
Progress = Callable[[Step], None]
"""A function that is called with each step: the rung, the work on it, and its progress."""


def climb(
    op: str = "gemm",
    *,
    device: str | None = None,
    threads: int | None = None,
    peers: str | Sequence[str] = INSTALLED,
    sizes: Sizes | None = None,
    quick: bool = False,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> ClimbResult:
    """Verify every rung of an operation's ladder and time it beside the library call and the peers.

    On an emulated GPU the rungs are counted instead of timed.

    `op` is `"gemm"`, `"reduce"` or, for GPUs alone, `"sums"`. `device` is `"cpu"`, `"cuda[:N]"` or
    `"emulated[:sm_XX]"`. If there is no GPU, `"cuda"` without `sizes` counts the rungs on an emulated GPU, and gives
    the times of a recorded climb beside the counts. If `device` is `None`, the CPU's ladder is climbed, then the GPU's:
    it is timed on a GPU, or counted on an emulated one if there is none. `threads`, `peers` and `sizes` are then for
    the CPU alone, if the operation has a ladder on it.

    `threads` is the number for the threaded rung, by default all physical cores. `peers` are names of libraries,
    `"installed"` or `""`. Each rung takes the largest of `sizes` that it finishes quickly. `quick` uses smaller sizes
    and fewer rounds: a quick look, not a measurement. The record of each device, and a chart of the times, are written
    into the folder `out`, which is created; without it nothing is written. `progress(step)` is called with a
    `timing.climb.Step` for each step.

    A wrong result raises nothing: it is in `wrong` of the result. Raises `UsageError` (an unknown operation, size or
    folder), `DeviceError`, `PeerError`, `MemoryError` and, if every rung is wrong, `WrongResultError`.
    """
    text = size_text(sizes)
    named = peers if isinstance(peers, str) else ",".join(peers)
    instead = _no_gpu(device) if text is None else ""
    first, *others = _devices("emulated" if instead else device, op)
    plans = [ClimbRequest(op, threads, INSTALLED if instead else named, text, quick).plan(first)]
    # Threads, peers and sizes apply to the first device only.
    plans += [ClimbRequest(op, quick=quick, budget_s=COUNT_BUDGET_S).plan(other) for other in others]
    folder = None if out is None else _make_folder(Path(out))
    show = progress or (lambda _step: None)
    parts = [_run(plan, folder, show, installed=named == INSTALLED or plan is not plans[0]) for plan in plans]
    if instead:
        note = f"{instead}; so the rungs were counted on {first.id}"
        parts[0] = replace(parts[0], notes=(*parts[0].notes, note), elsewhere=recorded_climb(op))
    return ClimbResult(tuple(parts))


def _no_gpu(named: str | None) -> str:
    """Return the reason why the device `"cuda"` cannot be opened; empty if it can, or for any other name."""
    if named != "cuda":
        return ""
    try:
        open_device(named)
    except DeviceError as error:
        return str(error)
    return ""


def _devices(named: str | None, op: str) -> list[Device]:
    """Return the named device. Without a name return the CPU and, if the operation has a ladder on GPUs, also a GPU or
    else the emulated one; for a ladder on GPUs alone, no CPU.
    """
    if named is not None:
        return [open_device(named)]
    devices = [] if ladder(op, "cuda") and not ladder(op, "cpu") else [open_device("cpu")]
    for name in ("cuda", "emulated") if ladder(op, "cuda") else ():
        try:
            return [*devices, open_device(name)]
        except DeviceError:
            continue
    return devices


def _run(plan: Climb | Count, folder: Path | None, show: Progress, *, installed: bool) -> ClimbPart:
    family = plan.device.family
    stem = None if folder is None else folder / ("climb" if family == "cpu" else f"climb-{family}")
    return _counted(plan, stem, show) if isinstance(plan, Count) else _timed(plan, stem, show, installed=installed)


def _timed(plan: Climb, stem: Path | None, show: Progress, *, installed: bool) -> ClimbPart:
    peers = list(plan.peers)
    if installed:
        precisions = {kernel.precision for kernel in plan.kernels}
        peers = default_peers(plan.device.device_name, plan.mode, plan.op.name, precisions)
    record, reports = run_climb(replace(plan, peers=peers, progress=show))
    rows = climb_rows(record)
    wrong = [report.explain() for report in reports if not report.passed]
    wrong += [f"{r.name} at {r.size}: outside its bound" for r in rows if r.role != "peer" and r.verified is False]
    notes = missing_peers(plan.device.device_name, plan.op.name) if installed else []
    return ClimbPart(record, times=tuple(rows), notes=tuple(notes), wrong=tuple(wrong),
                     files=_write(record, stem, chart=True))  # fmt: skip


def _counted(plan: Count, stem: Path | None, show: Progress) -> ClimbPart:
    record = count_kernels(plan, lambda text, done, total: show(Step("", f"counting {text}", done, total)))
    rows = count_rows(record)
    files = _write(record, stem, chart=False)
    predicted, missing = predicted_rows(record)
    return ClimbPart(record, counts=tuple(rows), wrong=tuple(wrong_counts(rows)), files=files,
                     predicted=tuple(predicted), unpredicted=tuple(missing))  # fmt: skip


def _write(record: Record, stem: Path | None, *, chart: bool) -> tuple[Path, ...]:
    """Write the record, and with `chart` its chart as SVG and PNG; return the written paths. Raises `UsageError`.

    A notice says that the chart's package is not installed. Without `stem` nothing is written.
    """
    if stem is None:
        return ()
    paths = tuple(stem.with_suffix(f".{suffix}") for suffix in (("json", "svg", "png") if chart else ("json",)))
    try:
        save_record(record, paths[0])
        if chart:
            try:
                from gemmlab.plots.chart import save
                from gemmlab.plots.ladder import climb_chart

                save(climb_chart(record), *paths[1:])
            except ModuleNotFoundError as error:
                notice(f"No chart: {error.name} is not installed; the record is written.")
                return paths[:1]
    except OSError as error:
        raise UsageError(f"cannot write to {stem.parent}: {error.strerror or error}") from error
    return paths


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror or error}") from error
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write to the folder {folder}")
    return folder
