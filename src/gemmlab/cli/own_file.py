"""The options that describe a user's `.cu` file where its text does not: operation, launch, compiler options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gemmlab.core.errors import UsageError

OpFlag = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE.py", help="Operation, or a Python file that states one. Default: the kernels', else gemm."
    ),
]
KernelFlag = Annotated[
    str | None, typer.Option("--kernel", help="The function in a .cu file that has several; 'tile<32>' for a template.")
]
GridFlag = Annotated[
    str | None, typer.Option(help="Blocks of a .cu file's kernel, as 'ceil_div(N, 32), ceil_div(M, 32)'.")
]
BlockFlag = Annotated[str | None, typer.Option(help="Block of a .cu file's kernel, as '32, 32'.")]
ArgsFlag = Annotated[
    str | None, typer.Option("--args", help="Arguments of a .cu file's kernel in order, as M,N,K,alpha,A,B,beta,C.")
]
SmemFlag = Annotated[
    str | None, typer.Option("--smem-bytes", help="Dynamic shared memory of a block of a .cu file's kernel, in bytes.")
]
RequireFlag = Annotated[
    list[str] | None,
    typer.Option("--require", help="Condition on a .cu file's problems, as 'N % 16 == 0'; repeatable."),
]
FactsFlag = Annotated[
    str | None, typer.Option("--facts", metavar="FILE.toml", help="Facts that the header of a .cu file would state.")
]
IncludeFlag = Annotated[
    list[str] | None, typer.Option("-I", metavar="FOLDER", help="Folder of a .cu file's headers; repeatable.")
]
DefineFlag = Annotated[
    list[str] | None, typer.Option("-D", metavar="NAME=VALUE", help="Macro of a .cu file; repeatable.")
]
OptionFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="TEXT", help="Compiler option for a .cu file, --option=-use_fast_math; repeatable."
    ),
]


def own_flags(names: Sequence[str], **flags: str | list[str] | None) -> dict[str, Any]:
    """Return the flags that have a value, with the path `facts` made absolute.

    Raises `UsageError` if there is one and no name in `names` is that of a `.cu` file.
    """
    from gemmlab.kernels.by_name import is_own

    stated = {key: value for key, value in flags.items() if value not in (None, [])}
    if stated and not any(map(is_own, names)):
        raise UsageError(f"--{next(iter(stated)).replace('_', '-')}: name the .cu file that it describes")
    if "facts" in stated:
        # Another process may have another working directory.
        stated["facts"] = str(Path(str(stated["facts"])).absolute())
    return stated


def split_threads(
    names: Sequence[str], threads: str | None, flags: Mapping[str, Any]
) -> tuple[str | None, dict[str, Any]]:
    """Return the thread count and the flags. With a `.cu` file among `names`, `threads` is the shape of its block: it
    becomes a flag, and the thread count is `None`.
    """
    from gemmlab.kernels.by_name import is_own

    if threads is not None and any(map(is_own, names)):
        return None, {**flags, "threads": threads}
    return threads, dict(flags)
