"""The flags for facts about the user's own `.cu` file that are not in its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from gemmlab.core.errors import UsageError

KernelFlag = Annotated[
    str | None, typer.Option("--kernel", help="Of a .cu file: the function, where it has several; 'tile<32>'.")
]
GridFlag = Annotated[str | None, typer.Option(help="Of a .cu file: blocks, as 'ceil_div(N, 32), ceil_div(M, 32)'.")]
ArgsFlag = Annotated[
    str | None, typer.Option("--args", help="Of a .cu file: what its arguments are, as M,N,K,alpha,A,B,beta,C.")
]
SmemFlag = Annotated[
    str | None, typer.Option("--smem-bytes", help="Of a .cu file: dynamic shared memory a block, in bytes.")
]
RequireFlag = Annotated[
    list[str] | None,
    typer.Option("--require", help="Of a .cu file: what it needs of problems, as 'N % 16 == 0'; repeatable."),
]


def own_flags(names: Sequence[str], **flags: str | list[str] | None) -> dict[str, Any]:
    """Return the flags that have a value; raise `UsageError` if `names` has no `.cu` file that they could belong to."""
    from gemmlab.kernels.by_name import is_own

    stated = {key: value for key, value in flags.items() if value not in (None, [])}
    if stated and not any(map(is_own, names)):
        raise UsageError(f"--{next(iter(stated)).replace('_', '-')}: name the .cu file that it is about")
    return stated


def split_threads(
    names: Sequence[str], threads: str | None, flags: Mapping[str, Any]
) -> tuple[str | None, dict[str, Any]]:
    """Return (threads of this machine, flags). With a `.cu` file `--threads` is the shape of its block, a flag."""
    from gemmlab.kernels.by_name import is_own

    if threads is not None and any(map(is_own, names)):
        return None, {**flags, "threads": threads}
    return threads, dict(flags)
