"""The options in the first line of a `%%cuda` cell."""

from __future__ import annotations

import argparse
import shlex
from functools import cache
from typing import Any, NoReturn

from gemmlab.core.errors import UsageError


class _Parser(argparse.ArgumentParser):
    """A parser whose errors do not end the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%cuda: {message}; %%cuda -h lists the options")


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of the cell's options; its help is that of `%%cuda -h`."""
    made = _Parser("%%cuda", description="Compile the cell, check it, count it on the emulator, and explain it.",
                   add_help=False, allow_abbrev=False)  # fmt: skip
    add = made.add_argument
    add("-h", "--help", action="store_true", help="Show this help.")
    add("--size", "--sizes", dest="sizes", help="Sizes to check, as 256,MxNxK; the first is counted. Default: all.")
    add("--device", help="Where to check: cuda[:N] or emulated[:sm_XX]. Default: a GPU, else emulated.")
    add("--arch", default="", help="Explain code for this architecture, as sm_90.")
    add("--gpu", default="", help="Explain for this GPU: H200, A100, L4 ...")
    add("--op", help="The operation that the kernel computes: gemm (the default), reduce, sums, batch.")
    add("--kernel", help="The kernel of a cell that has several; 'tile<32>' for a template.")
    add("--grid", help="Blocks, as 'ceil_div(N, 32), ceil_div(M, 32)', or numbers with arrays in --args.")
    add("--threads", help="Threads of a block, as '32, 32'.")
    add("--args", help="Arguments in order, as M,N,K,alpha,A,B,beta,C; to launch any kernel: numbers, and random "
                       "arrays as float32[64x64].")  # fmt: skip
    add("--launch", action="store_true", help="Launch with --args, in which names are the notebook's variables.")
    add("--smem-bytes", help="Dynamic shared memory of a block, in bytes.")
    add("--require", action="append", help="Condition on the problems, as 'N %% 16 == 0'; repeatable.")
    add("-I", dest="include", action="append", help="Folder of headers; repeatable.")
    add("-D", dest="define", action="append", metavar="NAME=VALUE", help="Macro; repeatable.")
    add("--option", action="append", help="Compiler option, as --option=-use_fast_math; repeatable.")
    add("--full", action="store_true", help="Check the slow cases, too.")
    add("--timeout", type=float, metavar="SECONDS", default=120.0, help="Stop checking after this time. Default: 120.")
    add("--no-check", action="store_true", help="Do not check.")
    add("--no-explain", action="store_true", help="Do not explain.")
    return made


def parse(line: str) -> Any:
    """Return the options of a line. Raises `UsageError`."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise UsageError(f"%%cuda {line}: {error}") from error
    return parser().parse_args(words)


def completions(symbol: str) -> list[str]:
    """Return the options that begin with `symbol`."""
    known = (name for action in parser()._actions for name in action.option_strings)  # noqa: SLF001 - no public list
    return sorted(name for name in known if name.startswith(symbol))
