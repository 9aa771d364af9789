"""`gemmlab tune --library`, `--show`, `--export`, `--import`, `--forget`: kernel choices stored for the user."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gemmlab.cli.answer import Form, print_csv, print_json
from gemmlab.cli.console import add_row, plain_table, table_console
from gemmlab.core.errors import UsageError
from gemmlab.core.numerals import plain
from gemmlab.core.tabular import csv_text, flat
from gemmlab.core.words import assignments, counted

if TYPE_CHECKING:
    from gemmlab.dispatch.choice_store import Entry


def store_command(
    verb: str, *, device: str, mode: str | None, budget: float, shapes: Path | None, sizes: str | None,
    file: Path | None, fresh: bool, form: Form,
) -> None:  # fmt: skip
    """Run `verb` (`--library`, `--show`, `--export`, `--import` or `--forget`) on the store of choices; print the
    answer.

    `file` is that of `--export` and `--import`; `budget` is in seconds. Raises `UsageError`.
    """
    if (shapes is not None or sizes is not None or fresh) and verb != "--library":
        raise UsageError("--shapes, --sizes, --fresh: are for --library")
    if verb == "--library":
        answer: dict[str, Any] = _library(device, mode, budget, shapes, sizes, fresh=fresh, form=form)
    elif verb == "--show":
        answer = _show(form=form)
    elif verb == "--forget":
        answer = _forget(device)
    else:
        answer = _exchange(verb, file)
    if form is Form.JSON:
        print_json(answer)
    elif form is Form.CSV:
        rows = answer["entries"] if isinstance(answer["entries"], list) else [answer]
        print_csv(csv_text([flat(row) for row in rows]))
    elif "text" in answer:
        typer.echo(answer["text"])


def _library(
    device: str, mode: str | None, budget: float, shapes: Path | None, sizes: str | None, *, fresh: bool, form: Form
) -> dict[str, Any]:
    from gemmlab.cli.tune_cmd import progress_status
    from gemmlab.core.data_folder import require_data_dir
    from gemmlab.devices.select import open_device
    from gemmlab.ops.gemm import GemmOp
    from gemmlab.tuning.choice_times import Request
    from gemmlab.tuning.library_tuning import tune_library, usual_problems

    where = open_device(device, mode)
    text = sizes or _sizes_in(shapes)
    problems = list(GemmOp().parse_sizes(text)) if text else usual_problems(where)
    with progress_status() as show:
        request = Request(
            where,
            mode or where.device_name.modes[0],
            budget,
            problems,
            require_data_dir() / "searches",
            lambda text: show(f"gemmlab.gemm: {text}", 0, 0),
            fresh,
        )
        entries = list(tune_library(request))
    if form is Form.TEXT:
        _print(entries)
    words = f"{counted(len(entries), 'choice')} stored, for gemmlab.gemm from the next process on"
    if entries and all(entry.us == entry.shipped_us for entry in entries):
        words += "; none is faster than the shipped one (a longer --budget goes on from here)"
    return {"entries": [asdict(entry) for entry in entries], "text": words if entries else "nothing new was measured"}


def _sizes_in(path: Path | None) -> str:
    """Return the sizes in a file, one per line, joined by commas; `""` for `None`. `#` begins a comment.

    Raises `UsageError`.
    """
    if path is None:
        return ""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--shapes {path}: {error}") from error
    sizes = [text for line in lines if (text := line.partition("#")[0].strip())]
    if not sizes:
        raise UsageError(f"--shapes {path}: has no size; write one in each line, as 128x4096x4096:nt")
    return ",".join(sizes)


def _show(*, form: Form) -> dict[str, Any]:
    from gemmlab.dispatch.choice_store import objection, store_path
    from gemmlab.tuning.store_file import stored

    entries = list(stored().values())
    if form is Form.TEXT and entries:
        _print(entries)
    shown = [{**asdict(entry), "objection": objection(entry)} for entry in entries]
    return {"path": str(store_path()), "entries": shown, "text": f"{counted(len(entries), 'choice')} in {store_path()}"}


def _forget(device: str) -> dict[str, Any]:
    from gemmlab.devices.select import open_device
    from gemmlab.tuning.library_tuning import machine_of
    from gemmlab.tuning.store_file import forget

    machine = machine_of(open_device(device, None))
    count = forget(machine)
    return {"machine": machine, "entries": count, "text": f"{counted(count, 'choice')} forgotten for {machine}"}


def _exchange(verb: str, file: Path | None) -> dict[str, Any]:
    from gemmlab.tuning.store_file import export, import_file

    if file is None:
        raise UsageError(f"{verb}: name a file")
    if verb == "--export":
        count = export(file)
        return {"file": str(file), "entries": count, "text": f"{counted(count, 'choice')} written to {file}"}
    count, left_out = import_file(file)
    lines = [f"{counted(count, 'choice')} merged from {file}", *(f"  left out: {why}" for why in left_out)]
    return {"file": str(file), "entries": count, "left_out": left_out, "text": "\n".join(lines)}


def _print(entries: list[Entry]) -> None:
    from gemmlab.dispatch.choice_store import objection

    table = plain_table(["product", "kernel and configuration", "us", "shipped us", "x", "taken", "machine"], 2)
    for entry in entries:
        stale = " (stale)" if objection(entry) else ""
        add_row(table, [
            entry.product or "every", f"{entry.kernel} {assignments(entry.config)}{stale}", plain(entry.us),
            plain(entry.shipped_us), f"{entry.shipped_us / entry.us:.3f}", entry.taken[:10], entry.machine,
        ])  # fmt: skip
    table_console().print(table)
