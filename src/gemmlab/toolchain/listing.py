"""Read the list of files that the compiler's front end opens.

NVRTC passes `-Xcudafe` options to its front end. With `--trace_includes` the front end writes a line for every header
that an `#include` opens, even if a guard skips its contents: a space for each level of nesting, then the path as it was
opened, or the name of a header that is passed as text. Macros, comments, digraphs and continued lines in the directive
are resolved by then.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from gemmlab.toolchain.include_path import absolute

_TRACE, _OUTPUT = "trace.txt", "preprocessed.txt"


def trace_option(folder: Path) -> list[str]:
    """Return compiler options that write the listing into `folder`."""
    return ["-Xcudafe", "--trace_includes", "-Xcudafe", f"--error_output={folder / _TRACE}"]


def preprocessing(folder: Path) -> list[str]:
    """Return options that make the compiler preprocess only. It takes a tenth of the time; the result is in
    `folder`.
    """
    return ["-Xcudafe", "--preprocess", "-Xcudafe", f"--output={folder / _OUTPUT}"]


def opened(folder: Path, known: Collection[str]) -> list[str] | None:
    """Return the absolute paths of the files in the listing in `folder`, and remove it. Headers in `known` are left
    out.

    `known` are the names of headers that were passed as text. NVRTC's built-in headers are left out, too. A file that
    was opened twice is there twice. `None` if the run wrote no listing or an empty one.
    """
    file = folder / _TRACE
    try:
        lines = os.fsdecode(file.read_bytes()).splitlines()
    except OSError:
        return None
    file.unlink()
    names = [line.lstrip(" ") for line in lines]
    # Look up each name once: CUDA's headers are opened hundreds of times. NVRTC's built-in headers are no files.
    found = {name: absolute(name) for name in {*names} - {*known} if Path(name).is_absolute() or Path(name).is_file()}
    return [found[name] for name in names if name in found] if names else None
