"""`gemmlab cache`: simulate the cache misses of CPU kernels from their addresses, and time their packing of A and B."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gemmlab.cli.answer import CsvFlag, Form, answer_form, print_csv, print_json
from gemmlab.cli.console import progress_console, table_console
from gemmlab.cli.help_examples import kernel_names
from gemmlab.cli.option_values import require_place
from gemmlab.core.errors import UsageError

if TYPE_CHECKING:
    from gemmlab.core.records import Record
    from gemmlab.kernels.kernel import Kernel
    from gemmlab.probes.cachesim import Caches


def cache(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            autocompletion=kernel_names,
            metavar="[KERNEL]...",
            help="Kernels by id, or solutions (.toml) of exercises about caches; without any, the ladder.",
        ),
    ] = None,
    op: Annotated[str, typer.Option(help="Operation of the ladder and of the sizes.")] = "gemm",
    sizes: Annotated[
        str | None, typer.Option(help="256, 256,512, 256:4096:128, MxNxK. Default: 128, or the exercise's.")
    ] = None,
    l1: Annotated[
        str | None, typer.Option(help="Size and ways of L1, as 48K/12. Default: this machine's, or the exercise's.")
    ] = None,
    l2: Annotated[str | None, typer.Option(help="Size and ways of L2, as 2M/16. Default: as for --l1.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print record and rows as JSON, nothing else.")] = False,
    as_csv: CsvFlag = False,
    save: Annotated[Path | None, typer.Option(help="Write the record to this file.")] = None,
) -> None:
    """Simulate the cache misses of CPU kernels, and time their packing of A and B."""
    from gemmlab.core.records import save_record, to_json
    from gemmlab.core.tabular import csv_text, flat
    from gemmlab.devices.select import open_device
    from gemmlab.kernels.catalog import find_kernel
    from gemmlab.kernels.choice_exercise import SUFFIX
    from gemmlab.kernels.rungs_on import Rungs, rungs_on
    from gemmlab.observe.cache_record import cache_rows, run_cache
    from gemmlab.ops.catalog import find_op

    form = answer_form(as_json=as_json, as_csv=as_csv)
    operation = find_op(op)
    solved = [_solution(name) for name in kernels or [] if name.endswith(SUFFIX)]
    if len(solved) == 1 and len(kernels or []) == 1:
        sizes, l1, l2 = sizes or solved[0].sizes, l1 or solved[0].l1, l2 or solved[0].l2
    problems = operation.parse_sizes(sizes or "128")
    if save is not None:
        require_place("--save", save)
    others = iter(solved)
    named = [next(others).kernel if name.endswith(SUFFIX) else find_kernel(name) for name in kernels or []]
    rungs = rungs_on(op, open_device("cpu")) if not named else Rungs(tuple(named))
    for line in rungs.left_out:
        progress_console().print(line)
    caches = _caches(l1, l2)
    with _progress() as progress:
        record = run_cache(rungs.kernels, operation, problems, caches, progress)
    if save is not None:
        save_record(record, save)
    rows = [asdict(row) for row in cache_rows(record)]
    if form is Form.JSON:
        print_json({"record": to_json(record), "rows": rows})
    elif form is Form.CSV:
        print_csv(csv_text([flat(row) for row in rows]))
    else:
        _print_table(record, caches)


@dataclass(frozen=True, slots=True)
class _Solved:
    """The kernel of a file that solves an exercise about caches, and the exercise's sizes and caches, as texts."""

    kernel: Kernel
    sizes: str
    l1: str
    l2: str


def _solution(name: str) -> _Solved:
    """Read the solution in the file `name`: its kernel with the chosen values, and the exercise's sizes and caches.

    Raises `UsageError` if the exercise is not about caches.
    """
    from gemmlab.kernels.choice_exercise import kernel_with_values

    exercise, kernel, chosen = kernel_with_values(Path(name))
    if not exercise.l1:
        raise UsageError(f"{name}: the exercise is not about caches; test it with: gemmlab check {name}")
    return _Solved(kernel, exercise.size_for(chosen), exercise.l1, exercise.l2)


def _caches(l1: str | None, l2: str | None) -> Caches:
    from gemmlab.core.hardware import cpu_info
    from gemmlab.observe.cache_misses import host_caches
    from gemmlab.probes.cachesim import Caches, Level

    if l1 is not None and l2 is not None:
        return Caches(Level.parse(l1), Level.parse(l2))
    here = host_caches(cpu_info())
    return Caches(Level.parse(l1) if l1 else here.l1, Level.parse(l2) if l2 else here.l2)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    from rich.progress import Progress

    with Progress(console=progress_console(), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda label, done, total: bar.update(task, description=label, completed=done, total=total)


def _print_table(record: Record, caches: Caches) -> None:
    from rich.table import Table
    from rich.text import Text

    from gemmlab.observe.cache_record import cache_rows
    from gemmlab.results.climb_rows import short_size

    headings = ("kernel", "size", "bytes\nused", "L1\nmisses", "L2\nmisses", "TLB\nmisses", "bytes\nL2-mem",
                "packs,\nbytes", "L2\nmisses", "time")  # fmt: skip
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in headings:
        table.add_column(Text(heading), justify="left" if heading in ("kernel", "size") else "right")
    for row in cache_rows(record):
        figures = (row.accessed_bytes, row.l1_misses, row.l2_misses, row.tlb_misses, row.from_memory)
        shares = (row.packing_bytes, row.packing_l2_misses, row.packing_time)
        cells = (f"{figure:.2f}" for figure in figures)
        table.add_row(
            row.kernel, short_size(row.size), *cells, *("" if share is None else f"{share:.1%}" for share in shares)
        )
    console = table_console()
    console.print(table)
    named = ", ".join(
        f"{name} {level.size >> 10} KiB in {level.ways} ways"
        for name, level in (("L1", caches.l1), ("L2", caches.l2), ("TLB reach", caches.tlb))
    )
    console.print(
        f"\n{named}. Misses for 1000 multiply-adds, bytes for one: loaded and stored, "
        "moved between L1 and L2, and between L2 and memory. Packing: its share of bytes used, L2 misses and time."
    )
    for note in record.notes:
        console.print(f"{note}.")


def register(app: typer.Typer) -> None:
    app.command("cache")(cache)
