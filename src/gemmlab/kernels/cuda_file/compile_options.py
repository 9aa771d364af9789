"""Options of the compiler that a kernel file or its user may state, as people write them for nvcc."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.toolchain.include_path import split

_TAKEN = re.compile(
    r"-D\w.*|-U\w+|--?(?:define-macro|undefine-macro|include|pre-include|std|ftz|prec-sqrt|prec-div|fmad|maxrregcount"
    r"|diag-suppress)=[^\n]+|--?(?:use_fast_math|extra-device-vectorization|restrict|w)"
    r"|(?:-Xptxas|--?ptxas-options)=--?(?:v|O[0-3]|allow-expensive-optimizations=\w+|d[ls]cm=\w+"
    r"|register-usage-level=\d+|fmad=\w+|warn-[\w-]+)",
    re.DOTALL,
)
_NEEDLESS = re.compile(r"-O[0-3s]?|-g|--?lineinfo|--?expt-(?:relaxed-constexpr|extended-lambda)|--?extended-lambda")
"""Options of nvcc that NVRTC does not need; they are dropped."""
_EXAMPLES = "-I, -D, -U, -include=, -std=, --use_fast_math, -fmad=, -ftz=, -maxrregcount=, -Xptxas=-dlcm=ca"


def compiler_options(stated: Iterable[str], folder: Path) -> tuple[str, ...]:
    """Return the options in the form that NVRTC takes; folders of headers that are not absolute are within `folder`.

    Raises `UsageError` for an option that a kernel may not have, as one that writes files or that NVRTC does not know.
    """
    folders, others = split(_joined([text.strip() for text in stated]))
    for option in others:
        if not (_TAKEN.fullmatch(option) or _NEEDLESS.fullmatch(option)):
            raise UsageError(f"{option!r} is no option that a kernel may be compiled with; those are {_EXAMPLES}")
    useful = [option for option in others if not _NEEDLESS.fullmatch(option)]
    return (*useful, *(f"-I{(folder / name).absolute()}" for name in folders))


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
