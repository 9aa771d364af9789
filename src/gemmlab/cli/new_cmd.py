"""`gemmlab new`: write a CUDA kernel file to start from, or draft a rung of a ladder in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gemmlab.cli.answer import print_json
from gemmlab.core.errors import UsageError


def new(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE.cu]", help="File to write; its name becomes the kernel's.")
    ] = None,
    rung: Annotated[
        str | None, typer.Option(metavar="NAME", help="Draft a rung of a ladder instead: its file and docs section.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="KERNEL", help="The rung before the new one, which begins as its copy.")
    ] = None,
    branch: Annotated[bool, typer.Option("--branch", help="A side branch: the ladder goes on without it.")] = False,
    exercise: Annotated[
        str | None, typer.Option(metavar="RUNG", help="Write the exercise of a rung: a task, and a file to start from.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a working, commented CUDA kernel that gemmlab can compile, check and count.

    With --rung and --after, in a checkout of gemmlab: a new rung of a ladder. With --exercise: the exercise of a rung,
    whose solution `gemmlab check` tests.
    """
    if rung is not None:
        if file is not None or after is None or force or exercise is not None:
            raise UsageError(
                "--rung NAME needs --after KERNEL and takes no FILE.cu: it is written into the ladder's folder"
            )
        _new_rung(rung, after, branch=branch, as_json=as_json)
    elif after is not None or branch:
        raise UsageError("--after and --branch are options of --rung NAME")
    elif exercise is not None:
        _new_exercise(file, exercise, force=force, as_json=as_json)
    elif file is None:
        raise UsageError("name the FILE.cu to write, or a new rung: --rung NAME --after KERNEL, or --exercise RUNG")
    else:
        _new_file(file, None, force=force, as_json=as_json)


def _new_exercise(file: Path | None, rung: str, *, force: bool, as_json: bool) -> None:
    from gemmlab.kernels.choice_exercise import SUFFIX, choice_ids, find_choice
    from gemmlab.kernels.exercise import find_exercise

    if rung not in choice_ids():
        _new_file(file or Path(find_exercise(rung).file_name), rung, force=force, as_json=as_json)
        return
    choice = find_choice(rung)
    path = file or Path(choice.file_name)
    if path.suffix != SUFFIX:
        raise UsageError(f"{path}: the exercise of {rung} is a choice of values, in a file as {choice.file_name}")
    steps = [step for step in (choice.command(path), f"gemmlab check {path}") if step]
    _write(path, choice.text(), steps, force=force, as_json=as_json)


def _new_file(file: Path, exercise: str | None, *, force: bool, as_json: bool) -> None:
    from gemmlab.kernels.user_kernel import starting_text

    check = f"gemmlab check {file} --device emulated"
    # An exercise is solved when its check says so; compiled code would be no step towards that.
    steps = [check] if exercise is not None else [check, f"gemmlab compile {file}"]
    _write(file, starting_text(file, exercise), steps, force=force, as_json=as_json)


def _write(file: Path, text: str, steps: list[str], *, force: bool, as_json: bool) -> None:
    if not file.resolve().parent.is_dir():
        raise UsageError(f"{file}: no folder {file.parent}")
    try:
        with file.open("w" if force else "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise UsageError(f"{file} exists; --force overwrites it") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}") from error
    if as_json:
        print_json({"file": str(file), "kernel": file.stem, "next": steps})
    else:
        typer.echo(f"Written: {file}. Next:\n  " + "\n  ".join(steps))


def _new_rung(name: str, after: str, *, branch: bool, as_json: bool) -> None:
    from gemmlab.kernels.rung_draft import OPEN, draft_rung

    draft = draft_rung(name, after, branch=branch)
    draft.write()
    on_gpu = draft.kernel.suffix == ".cu"
    steps = [
        f"gemmlab check {name}" + (" --device emulated" if on_gpu else ""),
        *(["make counts"] if on_gpu else []),
        "make tables",
        "pytest tests/docs/test_rungs.py",
    ]
    if as_json:
        print_json({
            "file": str(draft.kernel), "kernel": name, "page": str(draft.page), "follower": draft.follower,
            "next": steps,
        })  # fmt: skip
        return
    typer.echo(f"Written: {draft.kernel}, a copy of {after} under another name.")
    typer.echo(f"Its section: {draft.page}, under ## {name}.")
    if draft.follower:
        typer.echo(f"{draft.follower} comes after {name} now.")
    expect = ", and state what its counters must show (`expect`)" if on_gpu else ""
    typer.echo(f'Fill in what begins with "{OPEN}"{expect}. Next:')
    typer.echo("  " + "\n  ".join(steps))


def register(app: typer.Typer) -> None:
    app.command("new")(new)
