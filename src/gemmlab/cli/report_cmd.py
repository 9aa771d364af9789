"""`gemmlab report`: make one HTML page from records, with a section that explains each kernel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gemmlab.cli.answer import print_json
from gemmlab.core.words import counted

if TYPE_CHECKING:
    from gemmlab.pages.make import Progress


def report(
    records: Annotated[
        list[Path], typer.Argument(metavar="RECORD.json...", help="Records that climb or bench --save wrote.")
    ],
    out: Annotated[Path, typer.Option(help="File of the page.")] = Path("report.html"),
    kernels: Annotated[
        str, typer.Option(help="Kernels that get a section: ids or .cu files, separated by commas. Default: all.")
    ] = "",
    no_explain: Annotated[
        bool, typer.Option("--no-explain", help="Leave out explanations of GPU kernels, and pictures.")
    ] = False,
    gpu: Annotated[str, typer.Option(help="The GPU to explain for. Default: that of the record.")] = "",
    profiles: Annotated[
        list[Path] | None, typer.Option("--profile", help="A record of profiles (gemmlab profile); repeatable.")
    ] = None,
    pages: Annotated[
        bool, typer.Option("--pages", help="Write a page of each GPU kernel beside it: source and machine code.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: file, bytes, kernels.")] = False,
) -> None:
    """Put records into one HTML file that works without a network: charts, tables, a section for each kernel.

    Example: gemmlab report climb.json --out report.html --pages
    """
    from gemmlab.pages.make import MOST_BYTES, Plan, make, summary
    from gemmlab.pages.page_files import require_place, write_all

    require_place(out)
    named = [name for name in (part.strip() for part in kernels.split(",")) if name]
    started = time.perf_counter()
    with _live() as show:
        folder = f"{out.stem}-kernels" if pages else ""
        made = make(Plan(records, named, not no_explain, profiles or (), gpu, folder), show)
    write_all(out, made.html, made.kernel_pages)
    seconds, rows = time.perf_counter() - started, summary(made.page.sections)
    if as_json:
        print_json({
            "file": str(out), "bytes": len(made.html), "seconds": round(seconds, 3), "kernels": rows,
            "pages": [str(out.parent / address) for address in made.kernel_pages],
        })  # fmt: skip
        return
    typer.echo(f"{out}: {len(made.html) / 1e6:.2f} MB, {counted(len(rows), 'kernel')}, {seconds:.1f} s")
    if made.kernel_pages:
        total = sum(map(len, made.kernel_pages.values()))
        typer.echo(f"  {out.parent / folder}: {counted(len(made.kernel_pages), 'page')}, {total / 1e6:.2f} MB")
    if len(made.html) > MOST_BYTES:
        typer.echo("  large for a phone: name fewer kernels (--kernels), or leave explanations out (--no-explain)")
    for one in rows:
        if one["why_not"]:
            typer.echo(f"  {one['id']} is not explained: {one['why_not']}")
        if one["same_code"] is False:
            typer.echo(f"  {one['id']}: records have other versions of its code; its section says which one it shows")


@contextmanager
def _live() -> Iterator[Progress]:
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    from gemmlab.cli.console import progress_console

    bar = Bar(TextColumn("{task.description}", markup=False), BarColumn(24), console=progress_console(), transient=True)
    with bar:
        task = bar.add_task("reading records", total=None)

        def show(text: str, done: int, total: int) -> None:
            bar.update(task, description=text, completed=done, total=total or None)

        yield show


def register(app: typer.Typer) -> None:
    app.command("report")(report)
