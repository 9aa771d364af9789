"""`gemmlab schedule`: put a kernel's main loop in another order, with new control codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gemmlab.cli.answer import print_json
from gemmlab.cli.help_examples import kernel_names
from gemmlab.cli.option_values import parse_config
from gemmlab.core.errors import UsageError, WrongResultError
from gemmlab.core.files import write_output
from gemmlab.core.words import counted

if TYPE_CHECKING:
    from gemmlab.sass.ordering.loop_passes import LoopFacts, Ordered

_WORDS = {
    "instructions": "instructions", "ffmas": "of them FFMA", "reuse_rate": "operands from the operand cache",
    "conflict_cycles": "cycles of bank conflicts", "stall_cycles": "cycles by stall counts",
}  # fmt: skip


def schedule(
    kernel: Annotated[
        str,
        typer.Argument(
            autocompletion=kernel_names, metavar="KERNEL|FILE.cu", help="A GPU kernel, or a .cu file with one."
        ),
    ],
    arch: Annotated[str, typer.Option(help="Architecture: sm_80, sm_89 or sm_90.")] = "sm_90",
    config: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A kernel parameter; repeatable.")
    ] = None,
    passes: Annotated[
        str, typer.Option(help="Passes, separated by commas: registers, ffma, memory, reuse, stalls.")
    ] = "registers,ffma,memory,reuse,stalls",
    sizes: Annotated[
        str,
        typer.Option(
            help="Size at which the emulator runs both orders to compare their results, or the nearest that the kernel "
            "takes."
        ),
    ] = "129",
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write. Default: KERNEL-ARCH.cubin here, if the new order is better.", metavar="FILE.cubin"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Put the instructions of a kernel's main loop in another order, and write the cubin.

    If no pass helps, the compiler's order stays. A new order is written only if its control codes pass the check and
    its results on the emulator have the same bits; otherwise the command fails.
    """
    import numpy as np

    from gemmlab.devices.emulated import EmulatedDevice
    from gemmlab.kernels.by_name import named_kernels
    from gemmlab.sass.checking.register_room import require_room
    from gemmlab.sass.ordering.loop_passes import ordered
    from gemmlab.sass.writing.cubin_code import with_words
    from gemmlab.toolchain.cubin import read_cubin
    from gemmlab.verify.changed_code import build_of

    found = named_kernels([kernel])[kernel].kernel
    if found.device != "cuda":
        raise UsageError(f"{kernel} is a kernel for {found.device}; machine code of GPU kernels is put in order")
    build = build_of(found, arch, sizes, parse_config(config or []))
    made = ordered(build.function, arch, [name for name in passes.split(",") if name])
    stated = read_cubin(build.artifact.code, kernel).functions[build.function.name].registers
    require_room(made.function, arch, stated, kernel)
    code, note = build.artifact.code, "the compiler's own code"
    if made.better:
        code = with_words(code, build.function, made.words, made.order, kernel)
        device = EmulatedDevice(arch)
        where = build.problem.label
        if not np.array_equal(build.run(code, device), build.run(build.artifact.code, device)):
            raise WrongResultError(f"{kernel}: the new order gives different bits at {where}; nothing is written")
        note = f"the same bits at {where} on {device.id}, and no fault in the control codes"
    file = out or (Path(f"{Path(kernel).stem}-{arch}.cubin") if made.better else None)
    if file:
        write_output(file, code)
    if as_json:
        print_json(
            {
                "file": str(file) if file else None, "order": "new" if made.better else "compiler",
                "before": asdict(made.before), "after": asdict(made.after), "better": made.better, "worse": made.worse,
                "passes": passes, "unrecorded_pairs": made.unrecorded,
            }
        )  # fmt: skip
        return
    _show(made.before, made.after)
    for line in _remarks(made):
        typer.echo(line)
    typer.echo(f"{file}: {note}" if file else "nothing is written; --out FILE.cubin writes the compiler's own code")


def _remarks(made: Ordered) -> Iterator[str]:
    if not made.better:
        yield "no pass helps: the compiler's order stays"
    elif made.worse:
        changes = (
            f"{_WORDS[name]} ({_number(getattr(made.before, name))} to {_number(getattr(made.after, name))})"
            for name in made.worse
        )
        yield f"worse than the compiler's order: {', '.join(changes)}"
    if made.better and made.unrecorded:
        yield (
            f"{counted(made.unrecorded, 'pair')} of instructions had no recorded latency, or a longer one than the "
            "compiler leaves: these were not moved closer together (gemmlab check may name them)"
        )


def _show(before: LoopFacts, after: LoopFacts) -> None:
    from rich.table import Table

    from gemmlab.cli.console import table_console

    table = Table("main loop, one iteration of a warp", "before", "after")
    for name, words in _WORDS.items():
        table.add_row(words, *(_number(getattr(facts, name)) for facts in (before, after)))
    table_console().print(table)


def _number(value: Any) -> str:
    return f"{value:.1%}" if isinstance(value, float) else str(value)


def register(app: typer.Typer) -> None:
    app.command("schedule")(schedule)
