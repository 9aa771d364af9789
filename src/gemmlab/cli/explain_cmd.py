"""`gemmlab explain`: say what limits a GPU kernel, from its code and counters, and what to try next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gemmlab.cli.answer import print_json
from gemmlab.cli.explain_launch import is_launch, launched
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
    DefineFlag,
    FactsFlag,
    GridFlag,
    IncludeFlag,
    KernelFlag,
    OptionFlag,
    SmemFlag,
    compile_flags,
    own_flags,
)
from gemmlab.cli.timeout import DEFAULT_S, TimeoutFlag, error_answer, limited
from gemmlab.core.errors import TimeLimitError, UsageError

if TYPE_CHECKING:
    from gemmlab.analysis.explanation import Explanation
    from gemmlab.analysis.model.quoted_prediction import QuotedPrediction
    from gemmlab.core.gpu import GpuModel
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
        str, typer.Option(help="Code for sm_75, sm_80, sm_86, sm_87, sm_89 or sm_90. Default: what --gpu runs.")
    ] = "",
    sizes: Annotated[
        str, typer.Option(help="The one size to count at, as 256 or MxNxK; it is predicted too. Default: 256, or 2^22.")
    ] = "",
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A kernel parameter; repeatable.")
    ] = None,
    function: KernelFlag = None,
    grid: GridFlag = None,
    threads: Annotated[str | None, typer.Option(help="Block of a .cu file's kernel, as '32, 32'.")] = None,
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
    timeout: TimeoutFlag = DEFAULT_S,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what limits a kernel, from its machine code and counters; no GPU is needed.

    With two kernels, side by side. Ends with 1 when a kernel's result is wrong or it did what it must not (a race, an
    access out of bounds), and when the time is over.
    With --pictures also of kernels for a CPU, of which there is nothing but pictures.
    """
    from gemmlab.analysis.subject import machine
    from gemmlab.kernels.by_name import kernel_named

    if len(kernels) not in (1, 2):
        raise UsageError(f"{len(kernels)} kernels: one is explained, or two side by side")
    if is_launch(kernels, args):
        if len(kernels) != 1 or pictures or config or sizes or facts:
            raise UsageError("a launch is explained alone, without --config, --sizes, --facts and --pictures")
        options = compile_flags(include, define, option)
        require_drawable(roofline)
        with limited(timeout, error_answer(as_json=as_json)):
            of_launch = launched(kernels[0], function, grid, threads, args, smem_bytes, arch, gpu, options)
            if roofline is not None:
                write_roofline(roofline, [of_launch])
        _answer([of_launch], [[]], sass=sass, as_json=as_json)
        return
    flags = own_flags(
        kernels, kernel=function, grid=grid, threads=threads, args=args, smem_bytes=smem_bytes,
        options=compile_flags(include, define, option), facts=facts,
    )  # fmt: skip
    named = [kernel_named(name, flags) for name in kernels]
    chosen, model = machine(arch, gpu)
    settings = parse_config(config or [])
    request = picture_request(pictures, picture, formats, kernels)
    require_drawable(roofline)
    drawn_only = request is not None and named[0].device == "cpu"
    with limited(timeout, error_answer(as_json=as_json)):
        explained = [] if drawn_only else _explained(named, chosen, model, settings, sizes)
        predictions = [_quotes(one, model, sizes) for one in explained]
        if roofline is not None and explained:
            write_roofline(roofline, explained)
        written = write_pictures(request, named[0], chosen, settings, sizes) if request is not None else []
    if drawn_only and as_json:
        print_json({"kernels": [{"kernel": named[0].id, "pictures": written}]})
        return
    _answer(explained, predictions, sass=sass, as_json=as_json, drawn=written if request is not None else None)


def _answer(
    explained: list[Explanation], predictions: list[list[QuotedPrediction | str]], *, sass: bool, as_json: bool,
    drawn: list[dict[str, Any]] | None = None,
) -> None:  # fmt: skip
    """Print explanations, predicted times, and the files `drawn`; end with 1 for a wrong result or a hazard."""
    if as_json:
        found: list[dict[str, Any]] = [
            {**one.to_json(), **_predicted_json(answers)} for one, answers in zip(explained, predictions, strict=True)
        ]
        print_json({"kernels": [one if drawn is None else {**one, "pictures": drawn} for one in found]})
    else:
        _print(explained, predictions, sass)
        if drawn:
            print_pictures(drawn)
    if any(one.subject.hazards or one.subject.wrong for one in explained):
        raise typer.Exit(1)


def _explained(
    kernels: list[Kernel], arch: str, model: GpuModel, config: dict[str, int], sizes: str
) -> list[Explanation]:
    from gemmlab.analysis.explanation import explain as explain_kernel

    found = []
    for kernel in kernels:
        # A parameter that only one of two kernels has is set for that one.
        own = {name: value for name, value in config.items() if name in kernel.params} if len(kernels) > 1 else config
        found.append(explain_kernel(kernel, arch, model, own, sizes))
    if unknown := [name for name in config if not any(name in kernel.params for kernel in kernels)]:
        raise UsageError(f"--config: neither kernel has a parameter {unknown[0]}")
    return found


def _quotes(explained: Explanation, model: GpuModel, sizes: str) -> list[QuotedPrediction | str]:
    """Return the predicted time, or why there is none, at the usual large size, then at the size of `--sizes`."""
    from gemmlab.analysis.model.quoted_prediction import modelled, quote
    from gemmlab.core.errors import GemmlabError

    subject = explained.subject
    if subject.kernel is None:
        return []
    if subject.wrong:
        return [f"its result is wrong at {subject.size.label}"]
    try:
        known = modelled(subject.kernel, subject.arch, model, subject.config)
    except TimeLimitError:
        raise
    except GemmlabError as error:
        return [str(error)]
    found: list[QuotedPrediction | str] = []
    for size in ("", sizes) if sizes and subject.size != subject.scaled else ("",):
        try:
            found.append(quote(known, subject.kernel, subject.config, size))
        except TimeLimitError:
            raise
        except GemmlabError as error:
            found.append(str(error))
    return found


def _predicted_json(answers: list[QuotedPrediction | str]) -> dict[str, Any]:
    found = [answer if isinstance(answer, str) else answer.to_json() for answer in answers]
    return dict(zip(("predicted", "predicted_at_size"), found, strict=False))


def _print(explained: list[Explanation], predictions: list[list[QuotedPrediction | str]], sass: bool) -> None:
    from gemmlab.cli.console import table_console
    from gemmlab.cli.explain_tables import Page
    from gemmlab.cli.predictions import print_quoted_prediction

    page = Page(table_console())
    if len(explained) == 1:
        page.whole(explained[0])
    elif explained:
        page.pair(explained[0], explained[1])
    for one, answers in zip(explained, predictions, strict=True):
        for each in answers:
            print_quoted_prediction(page.console, one.subject.name, each)
    for one in explained if sass else []:
        page.code(one)


def register(app: typer.Typer) -> None:
    app.command("explain")(explain)
