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
from gemmlab.ops.op_file import op_named
from gemmlab.ops.operation import Operation

KernelName = str | os.PathLike[str]
"""A kernel: its id, the path of a `.cu` file, or CUDA C++ as text."""
Facts = Mapping[str, Any] | str | os.PathLike[str]
"""Facts about a user's kernel: the keys of its `/* gemmlab` comment, or the path of a `.toml` file with them."""
OpName = str | Operation
"""An operation: its name, the path of a Python file that states one, or an `Operation`."""
Size = str | SupportsIndex | tuple[SupportsIndex, ...]
Sizes = Size | list[Size]
"""Sizes: the text of `--sizes`, one extent, the extents of one problem as a tuple, or a list of such."""


def kernel_names(kernels: Iterable[KernelName]) -> list[str]:
    """Return names by which the layers below find kernels; source text is written to a file first.

    Raises `ArgumentTypeError`.
    """
    names = []
    for kernel in kernels:
        if not isinstance(kernel, str | os.PathLike):
            raise ArgumentTypeError(f"kernel is {shown(kernel)}; it must be an id, a path or CUDA C++ as text")
        text = os.fspath(kernel)
        names.append(str(source_file(text)) if is_source(text) else text)
    return names


def stated_facts(facts: Facts | None, names: Iterable[str]) -> dict[str, Any]:
    """Return the facts as a dictionary, a file's path under the key `facts`; empty for `None`.

    Raises `UsageError` if there are facts, but no `.cu` file among `names`.
    """
    if facts is None:
        return {}
    # Another process may have another working directory.
    stated = dict(facts) if isinstance(facts, Mapping) else {"facts": str(Path(facts).absolute())}
    if stated and not any(map(is_own, names)):
        raise UsageError(f"facts {', '.join(stated)}: name the .cu file that they describe")
    return stated


def operation_argument(op: OpName | None, names: Iterable[str], facts: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the operation `op`, and `facts`, with the operation added if a `.cu` file is among `names`.

    The name is empty if `op` is `None`. A Python file that states an operation is run here. Raises `UsageError`.
    """
    if op is None:
        return "", dict(facts)
    found = op_named(op).name
    return found, {**facts, **({"op": found.partition(":")[0]} if any(map(is_own, names)) else {})}


def size_text(sizes: Sizes | None) -> str | None:
    """Return sizes as the text of `--sizes`: `[512, (64, 32, 16)]` as `"512,64x32x16"`. `None` stays `None`.

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
