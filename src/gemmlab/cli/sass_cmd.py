"""`gemmlab sass`: list a kernel's machine code with control codes, source lines, registers and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gemmlab.cli.answer import CsvFlag, Form, answer_form, print_csv, print_json
from gemmlab.cli.help_examples import kernel_names
from gemmlab.cli.option_values import parse_config
from gemmlab.cli.own_file import (
    ArgsFlag,
    BlockFlag,
    DefineFlag,
    FactsFlag,
    GridFlag,
    IncludeFlag,
    KernelFlag,
    OptionFlag,
    SmemFlag,
    own_flags,
)
from gemmlab.cli.page_file import PageFlag, SamplesFlag, require_page, write_page
from gemmlab.cli.timeout import DEFAULT_S, TimeoutFlag, error_answer, limited
from gemmlab.core.errors import UsageError
from gemmlab.instruments.compile_flags import compile_flags

if TYPE_CHECKING:
    from gemmlab.analysis.listing.kernel_listing import Listing


def sass(
    kernel: Annotated[
        str,
        typer.Argument(autocompletion=kernel_names, metavar="KERNEL", help="A GPU kernel, a .cu, .cubin or .ptx file."),
    ],
    arch: Annotated[str, typer.Option(help="Code for sm_80, sm_89, sm_90, sm_90a ... Default: sm_90.")] = "",
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A kernel parameter; repeatable.")
    ] = None,
    diff: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Compare with the code that differs by this: STAGES=4, arch=sm_80, kernel=block_tile; repeatable.",
        ),
    ] = None,
    counts: Annotated[
        bool, typer.Option("--counts", help="Run the kernel on the emulator: executions, accesses, predicted cycles.")
    ] = False,
    sizes: Annotated[str, typer.Option(help="The size to count at, as 256 or MxNxK.")] = "",
    gpu: Annotated[str, typer.Option(help="The GPU to predict cycles for. Default: by --arch, H200.")] = "",
    function: KernelFlag = None,
    grid: GridFlag = None,
    threads: BlockFlag = None,
    args: ArgsFlag = None,
    smem_bytes: SmemFlag = None,
    facts: FactsFlag = None,
    include: IncludeFlag = None,
    define: DefineFlag = None,
    option: OptionFlag = None,
    ptx: Annotated[bool, typer.Option("--ptx", help="Show the PTX of each group of instructions.")] = False,
    loops: Annotated[bool, typer.Option("--loops", help="List loops only.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="With --diff, show equal instructions too.")] = False,
    html: PageFlag = None,
    profile: SamplesFlag = None,
    timeout: TimeoutFlag = DEFAULT_S,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: CsvFlag = False,
) -> None:
    """List machine code with control codes, source lines, register banks, live registers and loops; no GPU is needed.

    Example: gemmlab sass conflict_free --counts --html page.html, or gemmlab sass mine.cu --diff arch=sm_80
    """
    from gemmlab.analysis.listing.samples import read_samples
    from gemmlab.cli.sass_subject import Wanted, listed

    form = answer_form(as_json=as_json, as_csv=as_csv)
    require_page(html, None)
    if (sizes or gpu) and not counts:
        raise UsageError(f"--{'sizes' if sizes else 'gpu'} belongs to --counts")
    options = compile_flags(include, define, option)
    own = kernel if kernel.endswith(".cu") else ""
    flags = own_flags(
        [own], kernel=function if own else None, grid=grid, threads=threads, args=args, smem_bytes=smem_bytes,
        options=options, facts=facts,
    )  # fmt: skip
    wanted = Wanted(kernel, arch, parse_config(config or []), function, flags, tuple(options), gpu, sizes)
    sides = [wanted, *([wanted.other(diff)] if diff else [])]
    samples = read_samples(profile) if profile is not None else ()
    with limited(timeout, error_answer(as_json=as_json)):
        listings = [listed(side, samples if place == 0 else (), counts=counts) for place, side in enumerate(sides)]
        if html is not None:
            write_page(html, listings)
    if form is Form.JSON:
        print_json(_json(listings))
    elif form is Form.CSV:
        from gemmlab.core.tabular import csv_text
        from gemmlab.pages.listing_json import instruction_rows

        print_csv(csv_text(instruction_rows(listings)))
    elif html is None:
        _print(listings, ptx=ptx, only_loops=loops, whole=whole)


def _json(listings: list[Listing]) -> dict[str, object]:
    from gemmlab.analysis.listing.alignment import align
    from gemmlab.pages.listing_json import pairs_json, to_json

    if len(listings) == 1:
        return to_json(listings[0])
    left, right = listings
    pairs = pairs_json(align(left.code.rows, right.code.rows))
    return {"left": to_json(left), "right": to_json(right), "pairs": pairs}


def _print(listings: list[Listing], *, ptx: bool, only_loops: bool, whole: bool) -> None:
    from gemmlab.analysis.listing.alignment import align
    from gemmlab.cli import sass_text as text

    for listing in listings:
        typer.echo(text.head(listing))
    typer.echo("")
    if len(listings) == 1:
        for line in text.lines(listings[0], ptx=ptx, only_loops=only_loops):
            typer.echo(line)
        return
    left, right = listings
    pairs = align(left.code.rows, right.code.rows)
    for line in text.comparison(left, right, pairs, everything=whole):
        typer.echo(line)
    found = text.tally(pairs)
    typer.echo(f"\n{found['same']:,} alike, {found['changed']:,} changed (~), {found['left']:,} only on the left (<), "
               f"{found['right']:,} only on the right (>)")  # fmt: skip


def register(app: typer.Typer) -> None:
    app.command("sass")(sass)
