"""`gemmlab explain`: say what limits a GPU kernel, from its code and counters, and what to try next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gemmlab.cli.answer import CsvFlag, Form, answer_form, print_document, print_json
from gemmlab.cli.explain_pictures import (
    FormatFlag,
    PictureFlag,
    PicturesFlag,
    picture_request,
    print_pictures,
    write_pictures,
)
from gemmlab.cli.explain_roofline import RooflineFlag, require_drawable, write_roofline
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
    OpFlag,
    OptionFlag,
    SmemFlag,
    own_flags,
)
from gemmlab.cli.page_file import PageFlag, SamplesFlag, require_page, write_explained
from gemmlab.cli.timeout import DEFAULT_S, TimeoutFlag, error_answer, limited
from gemmlab.core.errors import UsageError
from gemmlab.instruments.compile_flags import compile_flags

if TYPE_CHECKING:
    from gemmlab.core.program import Config
    from gemmlab.instruments.explain_result import ExplainResult
    from gemmlab.kernels.kernel import Kernel


def explain(
    kernels: Annotated[
        list[str],
        typer.Argument(
            autocompletion=kernel_names,
            metavar="KERNEL [KERNEL]",
            help="One GPU kernel or .cu file, or two; a .cubin or .ptx file.",
        ),
    ],
    gpu: Annotated[str, typer.Option(help="The GPU to explain for: H200, A100, L4 ... Default: by --arch, H200.")] = "",
    arch: Annotated[
        str, typer.Option(help="Code for sm_75, sm_80, sm_86, sm_87, sm_89, sm_90 or sm_90a. Default: what --gpu runs.")
    ] = "",
    sizes: Annotated[
        str,
        typer.Option(help="The one size at which to count and predict, as 256 or MxNxK. Default: 256; for sums 2^22."),
    ] = "",
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A kernel parameter; repeatable.")
    ] = None,
    op: OpFlag = None,
    function: KernelFlag = None,
    grid: GridFlag = None,
    threads: BlockFlag = None,
    args: ArgsFlag = None,
    smem_bytes: SmemFlag = None,
    facts: FactsFlag = None,
    include: IncludeFlag = None,
    define: DefineFlag = None,
    option: OptionFlag = None,
    sass: Annotated[bool, typer.Option("--sass", help="Print the main loop.")] = False,
    pictures: PicturesFlag = None,
    picture: PictureFlag = None,
    formats: FormatFlag = None,
    roofline: RooflineFlag = None,
    html: PageFlag = None,
    profile: SamplesFlag = None,
    timeout: TimeoutFlag = DEFAULT_S,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: CsvFlag = False,
) -> None:
    """Say what limits a kernel, from its machine code and counters; no GPU is needed.

    Two kernels are shown side by side; `gemmlab sass --diff` shows two configurations so. Exits with 1 if a kernel's
    result is wrong, if it has a hazard (a race, an access out of bounds), and if the time limit is reached. --pictures
    also draws CPU kernels. `gemmlab explain threaded --threads 8` shows how threads divide C. Example: gemmlab explain
    mine.cu --html page.html
    """
    from gemmlab.analysis.subject import machine
    from gemmlab.instruments.call_arguments import operation_argument
    from gemmlab.instruments.explain_result import ExplainResult
    from gemmlab.instruments.explaining import explain_kernels
    from gemmlab.instruments.random_launch import is_launch, launched
    from gemmlab.kernels.by_name import is_own, kernel_named

    form = answer_form(as_json=as_json, as_csv=as_csv)
    require_page(html, profile)
    if len(kernels) not in (1, 2):
        raise UsageError(f"{len(kernels)} kernels: name one, or two to see them side by side")
    if is_launch(kernels, args):
        if len(kernels) != 1 or pictures or config or sizes or facts or op:
            raise UsageError("a launch is explained alone, without --op, --config, --sizes, --facts and --pictures")
        options = compile_flags(include, define, option)
        require_drawable(roofline)
        with limited(timeout, error_answer(as_json=as_json)):
            of_launch = launched(kernels[0], function, grid, threads, args, smem_bytes, arch, gpu, options).explain(gpu)
            if roofline is not None:
                write_roofline(roofline, [of_launch])
            explained = ExplainResult((of_launch,), ((),))
            write_explained(html, profile, explained)
        _answer(explained, form, sass=sass)
        return
    workers = None
    if not any(map(is_own, kernels)) and any(kernel_named(name, {}).device == "cpu" for name in kernels):
        workers, threads = threads, None
    flags = own_flags(
        kernels, kernel=function, grid=grid, threads=threads, args=args, smem_bytes=smem_bytes,
        options=compile_flags(include, define, option), facts=facts,
    )  # fmt: skip
    _, flags = operation_argument(op, kernels, flags)
    named = [kernel_named(name, flags) for name in kernels]
    chosen, model = machine(arch, gpu)
    settings = parse_config(config or [])
    request = picture_request(pictures, picture, formats, kernels)
    require_drawable(roofline)
    if request is None and len(named) == 1 and named[0].device == "cpu":
        _answer_division(named[0], settings, sizes, workers, form)
        return
    if workers is not None:
        raise UsageError("--threads: takes a thread count for one CPU kernel without --pictures, or a .cu file's block")
    drawn_only = request is not None and named[0].device == "cpu"
    with limited(timeout, error_answer(as_json=as_json)):
        explained = ExplainResult((), ()) if drawn_only else explain_kernels(named, chosen, model, settings, sizes)
        if roofline is not None and explained.explanations:
            write_roofline(roofline, explained.explanations)
        write_explained(html, profile, explained)
        written = write_pictures(request, named[0], chosen, settings, sizes) if request is not None else []
    if drawn_only and as_json:
        print_json({"kernels": [{"kernel": named[0].id, "pictures": written}]})
        return
    _answer(explained, form, sass=sass, drawn=written if request is not None else None)


def _answer_division(kernel: Kernel, config: Config, sizes: str, workers: str | None, form: Form) -> None:
    from gemmlab.cli.division_table import print_division
    from gemmlab.instruments.dividing import explain_division

    if workers is not None and not workers.isdecimal():
        raise UsageError(f"--threads {workers}: a number of threads")
    divided = explain_division(kernel, config, sizes, None if workers is None else int(workers))
    if not print_document(divided, form):
        print_division(divided)


def _answer(explained: ExplainResult, form: Form, *, sass: bool, drawn: list[dict[str, Any]] | None = None) -> None:
    """Print explanations, predicted times and the pictures `drawn`; exit with 1 for a wrong result or a hazard."""
    if form is Form.JSON and drawn is not None:
        print_json({"kernels": [{**one, "pictures": drawn} for one in explained.to_json()["kernels"]]})
    elif not print_document(explained, form):
        _print(explained, sass)
        if drawn:
            print_pictures(drawn)
    if not explained.sound:
        raise typer.Exit(1)


def _print(explained: ExplainResult, sass: bool) -> None:
    from gemmlab.cli.console import table_console
    from gemmlab.cli.explain_tables import Page
    from gemmlab.cli.predictions import print_quoted_prediction

    page, kernels = Page(table_console()), explained.explanations
    if len(kernels) == 1:
        page.whole(kernels[0])
    elif kernels:
        page.pair(kernels[0], kernels[1])
    for one, quotes in zip(kernels, explained.predictions, strict=True):
        for each in quotes:
            print_quoted_prediction(page.console, one.subject.name, each)
    for one in kernels if sass else []:
        page.code(one)


def register(app: typer.Typer) -> None:
    app.command("explain")(explain)
