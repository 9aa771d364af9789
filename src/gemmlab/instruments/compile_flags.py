"""The compiler's options for what a user states: folders of headers (`-I`), macros (`-D`), options (`--option`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def compile_flags(
    folders: Sequence[str] | None, macros: Sequence[str] | None, options: Sequence[str] | None
) -> list[str]:
    """Return the compiler's options: `options` as they are, then `-D` for each macro and `-I` for each folder.

    A relative folder lies in the working directory. `None` counts as an empty sequence.
    """
    return [
        *(options or []), *(f"-D{macro}" for macro in macros or []),
        *(f"-I{Path(folder).absolute()}" for folder in folders or []),
    ]  # fmt: skip
