"""Arguments of Python calls as the layers below take them: kernels by name, sizes as text."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.words import shown
from gemmlab.instruments.source_file import is_source, source_file
from gemmlab.kernels.by_name import is_own

KernelName = str | os.PathLike[str]
"""A kernel: its id, the path of a `.cu` file, or CUDA C++ as text."""
Facts = Mapping[str, Any] | str | os.PathLike[str]
"""Facts about a user's kernel: the keys of its `/* gemmlab` comment, or the path of a `.toml` file with them."""
Size = str | SupportsIndex | tuple[SupportsIndex, ...]
Sizes = Size | list[Size]
"""Sizes: the text of `--sizes`, one extent, the extents of one problem as a tuple, or a list of such."""


def kernel_names(kernels: Iterable[KernelName]) -> list[str]:
    """Return names as the layers below find kernels: a text with source is written to a file first.

    Raises `ArgumentTypeError`.
    """
    names = []
    for kernel in kernels:
        if not isinstance(kernel, str | os.PathLike):
            raise ArgumentTypeError(f"a kernel is its id, a path or CUDA C++ as text, not {shown(kernel)}")
        text = os.fspath(kernel)
        names.append(str(source_file(text)) if is_source(text) else text)
    return names


def stated_facts(facts: Facts | None, names: Iterable[str]) -> dict[str, Any]:
    """Return facts about the `.cu` files among `names`. Raises `UsageError` if there is none."""
    if facts is None:
        return {}
    # Another process may have another working directory.
    stated = dict(facts) if isinstance(facts, Mapping) else {"facts": str(Path(facts).absolute())}
    if stated and not any(map(is_own, names)):
        raise UsageError(f"facts {', '.join(stated)}: name the .cu file that they are about")
    return stated


def size_text(sizes: Sizes | None) -> str | None:
    """Return sizes as the text of `--sizes`: `512`, `(512, 256, 64)` or `[512, (64, 64, 64)]`.

    Raises `ArgumentTypeError`.
    """
    if sizes is None or isinstance(sizes, str):
        return sizes
    if isinstance(sizes, list):
        return ",".join(filter(None, map(size_text, sizes)))
    extents: Sequence[Any] = sizes if isinstance(sizes, tuple) else (sizes,)
    try:
        return "x".join(str(operator.index(extent)) for extent in extents)
    except TypeError as error:
        raise ArgumentTypeError(f"sizes {shown(sizes)}: whole numbers, tuples of them, or a list of such") from error
