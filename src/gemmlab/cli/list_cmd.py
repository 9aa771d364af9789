"""`gemmlab list`: print the catalog of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any

import typer

from gemmlab.cli.answer import CsvFlag, Form, answer_form, print_csv, print_json
from gemmlab.cli.console import table_console
from gemmlab.cli.help_examples import kernel_names
from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.core.precision import FLOAT32, PRECISIONS
from gemmlab.core.tabular import csv_text, flat
from gemmlab.core.words import assignments
from gemmlab.devices.device_name import parse_device
from gemmlab.kernels.kernel import Kernel


def _describe(kernel: Kernel) -> dict[str, Any]:
    return {
        "step": kernel.step,
        "after": kernel.after,
        "branch": kernel.branch,
        "aliases": list(kernel.aliases),
        "id": kernel.id,
        "op": kernel.op,
        "device": kernel.device,
        "summary": kernel.summary,
        "idea": kernel.idea,
        "layouts": list(kernel.layouts),
        "threaded": kernel.threaded,
        "precision": kernel.precision,
        "params": dict(kernel.params),
        "source": kernel.source,
        "file": str(kernel.path),
    }


def _print_ladders(kernels: Sequence[Mapping[str, Any]]) -> None:
    """Print one line per kernel, under a heading for each operation and device, by which `kernels` are sorted."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("step", justify="right")
    table.add_column("kernel")
    table.add_column("", overflow="fold")
    for (op, device), ladder in groupby(kernels, key=lambda kernel: (kernel["op"], kernel["device"])):
        if table.row_count:
            table.add_row()
        table.add_row("", Text(f"{op} on {device}", style="bold"), "")
        for kernel in ladder:
            step = "" if kernel["step"] is None else str(kernel["step"])
            exact = "" if kernel["precision"] == FLOAT32 else f" ({kernel['precision']})"
            branch = f" [{_branch(kernel['after'])}]" if kernel["branch"] else ""
            table.add_row(*(Text(cell) for cell in (step, kernel["id"], f"{kernel['summary']}{exact}{branch}")))
    table_console().print(table)


def _branch(after: str) -> str:
    return f"branches off {after}" if after else "begins its own line of the ladder"


def _print_whole(kernels: Sequence[Mapping[str, Any]]) -> None:
    """Print all facts of each kernel."""
    from rich.table import Table
    from rich.text import Text

    console = table_console()
    for kernel in kernels:
        table = Table(box=None, pad_edge=False, show_header=False, title=kernel["id"], title_justify="left")
        table.add_column("", style="bold")
        table.add_column("", overflow="fold")
        for name, value in kernel.items():
            table.add_row(name, Text(_words(value)))
        console.print(table)


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={part}" for name, part in value.items())
    if isinstance(value, list):
        return " ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def list_kernels(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(autocompletion=kernel_names, help="Print all facts about these.", metavar="[KERNEL]..."),
    ] = None,
    op: Annotated[str | None, typer.Option(help="Only kernels of this operation, as `gemm`.")] = None,
    device: Annotated[str | None, typer.Option(help="Only kernels that run there: cpu, cuda, emulated.")] = None,
    precision: Annotated[str | None, typer.Option(help="Only kernels of this precision: float32, tf32.")] = None,
    rungs: Annotated[bool, typer.Option("--rungs", help="Print only the ids of rungs, a line each.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: CsvFlag = False,
) -> None:
    """List the kernels in ladder order, or print all facts about those that are named."""
    from gemmlab.kernels.catalog import all_kernels, find_kernel

    form = answer_form(as_json=as_json, as_csv=as_csv)
    named = [find_kernel(name) for name in kernels or []]
    if named and (op or device or precision):
        raise UsageError("list: name kernels, or choose by --op, --device and --precision")
    if precision not in (None, *PRECISIONS):
        raise UsageError(f"no precision named {precision!r}; precisions: {', '.join(PRECISIONS)}")
    if named and not rungs:
        return _answer([_describe(kernel) for kernel in named], form, _print_whole)

    family = None if device is None else parse_device(device).kernels
    ops = sorted({kernel.op for kernel in all_kernels()})
    if op is not None and op not in ops:
        raise UsageError(f"no operation named {op!r}; operations: {', '.join(ops) or 'none'}")
    chosen = [_describe(k) for k in named or all_kernels()
              if op in (None, k.op) and family in (None, k.device) and precision in (None, k.precision)]  # fmt: skip
    if device is not None and not chosen:
        raise DeviceError(f"no kernels for the device {device!r} in this version")
    if rungs:
        chosen = [kernel for kernel in chosen if kernel["step"] is not None]
        return _answer(chosen, form, lambda rungs: typer.echo("\n".join(kernel["id"] for kernel in rungs)))
    return _answer(chosen, form, _print_ladders)


def _answer(kernels: list[dict[str, Any]], form: Form, show: Callable[[Sequence[Mapping[str, Any]]], None]) -> None:
    if form is Form.JSON:
        print_json(kernels)
    elif form is Form.CSV:
        print_csv(csv_text([flat({**kernel, "params": assignments(kernel["params"])}) for kernel in kernels]))
    else:
        show(kernels)


def register(app: typer.Typer) -> None:
    app.command("list")(list_kernels)
