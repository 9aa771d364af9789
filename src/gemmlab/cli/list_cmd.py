"""`gemmlab list`: the catalog of kernels."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gemmlab.cli.answer import print_json
from gemmlab.cli.console import table_console
from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.devices.select import parse_device
from gemmlab.kernels.kernel import Kernel


def _describe(kernel: Kernel) -> dict[str, Any]:
    return {
        "step": kernel.step,
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
        "file": f"{kernel.path.parent.name}/{kernel.path.name}",
    }


def _print_table(kernels: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=None, box=None, pad_edge=False, header_style="bold")
    for heading in ("step", "kernel", "op", "device", "precision", "layouts", "parameters", "summary", "source"):
        table.add_column(heading, justify="right" if heading == "step" else "left", overflow="fold")
    for kernel in kernels:
        params = " ".join(f"{name}={value}" for name, value in kernel["params"].items())
        step = "" if kernel["step"] is None else str(kernel["step"])
        cells = (step, kernel["id"], kernel["op"], kernel["device"], kernel["precision"],
                 " ".join(kernel["layouts"]), params)  # fmt: skip
        table.add_row(*(Text(cell) for cell in (*cells, kernel["summary"], kernel["source"])))
    table_console().print(table)


def list_kernels(
    op: Annotated[str | None, typer.Option(help="Only kernels of this operation, as `gemm`.")] = None,
    device: Annotated[str | None, typer.Option(help="Only kernels that run there: cpu, cuda, emulated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the kernels in ladder order, with what each is and where it comes from."""
    from gemmlab.kernels.catalog import all_kernels

    family = None if device is None else parse_device(device).kernels
    ops = sorted({kernel.op for kernel in all_kernels()})
    if op is not None and op not in ops:
        raise UsageError(f"no operation named {op!r}; operations: {', '.join(ops) or 'none'}")
    chosen = [_describe(k) for k in all_kernels() if op in (None, k.op) and family in (None, k.device)]
    if device is not None and not chosen:
        raise DeviceError(f"no kernels for the device {device!r} in this version")
    if as_json:
        print_json(chosen)
    else:
        _print_table(chosen)


def register(app: typer.Typer) -> None:
    app.command("list")(list_kernels)
