"""The flags that say about a person's own `.cu` file what its text does not."""

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
    """The facts that were given as flags; `UsageError` where no file is named that they could be of."""
    from gemmlab.kernels.by_name import is_own

    given = {key: value for key, value in flags.items() if value not in (None, [])}
    if given and not any(map(is_own, names)):
        raise UsageError(f"--{next(iter(given)).replace('_', '-')}: name the .cu file that it is about")
    return given


def split_threads(
    names: Sequence[str], threads: str | None, flags: Mapping[str, Any]
) -> tuple[str | None, dict[str, Any]]:
    """Threads of this machine, and all flags: `--threads` is the block's extents where a `.cu` file is named."""
    from gemmlab.kernels.by_name import is_own

    if threads is not None and any(map(is_own, names)):
        return None, {**flags, "threads": threads}
    return threads, dict(flags)
