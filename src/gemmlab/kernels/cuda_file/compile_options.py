"""Options of the compiler that a kernel file or its user may state, as people write them for nvcc."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.core.log import notice
from gemmlab.toolchain.include_path import split

_TAKEN = re.compile(
    r"-D\w.*|-U\w+|--?(?:define-macro|undefine-macro|include|pre-include|std|ftz|prec-sqrt|prec-div|fmad|maxrregcount"
    r"|diag-suppress)=[^\n]+|--?(?:use_fast_math|extra-device-vectorization|restrict|w)"
    r"|(?:-Xptxas|--?ptxas-options)=--?(?:v|O[0-3]|allow-expensive-optimizations=\w+|d[ls]cm=\w+"
    r"|register-usage-level=\d+|fmad=\w+|warn-[\w-]+)",
    re.DOTALL,
)
_NEEDLESS = re.compile(r"-O[0-3s]?|-g|--?lineinfo|--?expt-(?:relaxed-constexpr|extended-lambda)|--?extended-lambda")
"""Options of nvcc that change nothing here; they are dropped."""
_PASSED_ON = (
    "-Xcompiler", "--compiler-options", "-Xlinker", "--linker-options", "-Xnvlink", "--nvlink-options",
)  # fmt: skip
"""nvcc's options whose value, also one that looks like an option, is for another tool."""
_WITH_VALUE = (
    "-ccbin", "--compiler-bindir", "-arch", "--arch", "--gpu-architecture", "-code", "--code", "--gpu-code", "-gencode",
    "--generate-code", "-rdc", "--relocatable-device-code", "-Werror", "--Werror", "-cudart", "--cudart", "-t",
    "--threads", "-default-stream", "--default-stream", "-l", "-L",
)  # fmt: skip
"""nvcc's options whose value may be the next one."""
_OF_NVCC = re.compile(
    r"-[lL][^=\s]+|-G|--device-debug|-dc|--device-c|-c|--compile|-m64|-pg|--?shared|--?forward-unknown-to-host-compiler"
    r"|-W(?!error)[\w-]+"
)
"""Options for nvcc's other tools, without a value of their own, and those in whose place gemmlab sets its own."""
_EXAMPLES = "-I, -D, -U, -include=, -std=, --use_fast_math, -fmad=, -ftz=, -maxrregcount=, -Xptxas=-dlcm=ca"


def compiler_options(stated: Iterable[str], folder: Path) -> tuple[str, ...]:
    """Return the options in the form that NVRTC takes; folders of headers that are not absolute are within `folder`.

    Options that only nvcc needs are left out with a notice. Raises `UsageError` for an option that a kernel may not
    have, as one that writes files or that NVRTC does not know.
    """
    needed, of_nvcc = _apart([text.strip() for text in stated])
    folders, others = split(_joined(needed))
    for option in others:
        if not (_TAKEN.fullmatch(option) or _NEEDLESS.fullmatch(option)):
            raise UsageError(f"{option!r} is no option that a kernel may be compiled with; those are {_EXAMPLES}")
    if of_nvcc:
        _notice_once(f"Only nvcc needs these options, which are left out: {' '.join(of_nvcc)}")
    useful = [option for option in others if not _NEEDLESS.fullmatch(option)]
    return (*useful, *(f"-I{(folder / name).absolute()}" for name in folders))


@cache
def _notice_once(text: str) -> None:
    notice(text)


def _apart(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options for NVRTC, and those that only nvcc needs, with their values."""
    needed, of_nvcc = list[str](), list[str]()
    pending = deque(options)
    while pending:
        option = pending.popleft()
        name = re.split("[= ]", option, maxsplit=1)[0]
        if name not in (*_PASSED_ON, *_WITH_VALUE):
            others = not _OF_NVCC.fullmatch(option) or _NEEDLESS.fullmatch(option)
            (needed if others else of_nvcc).append(option)
            continue
        of_nvcc.append(option)
        if option == name and pending and (name in _PASSED_ON or not pending[0].startswith("-")):
            of_nvcc.append(pending.popleft())
    return needed, of_nvcc


def _joined(options: Sequence[str]) -> list[str]:
    """Return the options with values that stand separately joined to their names: `-Xptxas=-v` for `-Xptxas -v`."""
    found: list[str] = []
    for option in options:
        if found and found[-1] in ("-D", "-U"):
            found[-1] += option
        elif found and found[-1] in (
            "-Xptxas",
            "--ptxas-options",
            "-include",
            "--pre-include",
            "-maxrregcount",
            "-std",
        ):
            found[-1] += f"={option}"
        else:
            found.append(option)
    return found
