"""The compiler's options, from folders of headers, macros and options as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def compile_flags(
    folders: Sequence[str] | None, macros: Sequence[str] | None, options: Sequence[str] | None
) -> list[str]:
    """Return the compiler's options for `-I`, `-D` and `--option`; folders are relative to the working directory."""
    return [
        *(options or []), *(f"-D{macro}" for macro in macros or []),
        *(f"-I{Path(folder).absolute()}" for folder in folders or []),
    ]  # fmt: skip
