"""Checks of the kernel and configuration that a caller names."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from typing import Any

from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.words import shown
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.kernel import Kernel

USUAL = "threaded"
"""The CPU's kernel of multiply-adds."""


def named_kernel(name: object, device: str) -> Kernel:
    """Return the `gemm` kernel that a caller names by its id, or by the path of a `.cu` file.

    `device` is `"cpu"` or `"cuda"`. Raises `ArgumentTypeError` if `name` is neither text nor a path, and `UsageError`
    if the kernel is unknown, is for another operation, or runs on the other kind of device.
    """
    if not isinstance(name, (str, os.PathLike)):
        raise ArgumentTypeError(f"gemm: kernel is {shown(name)}; it must be a kernel's id or the path of a .cu file")
    kernel = find_kernel(os.fspath(name))
    if kernel.op != "gemm":
        why = ", which a batch uses by itself if it is faster" if kernel.op == "batch" else ""
        raise UsageError(f"gemm: {kernel.id} is a kernel for {kernel.op}{why}")
    if kernel.device != device:
        where = {"cpu": "on a CPU", "cuda": "on a GPU"}
        raise UsageError(f"gemm: {kernel.id} runs {where[kernel.device]}; the operands lie {where[device]}")
    return kernel


def checked_config(config: object) -> dict[str, int]:
    """Return parameter name -> value; empty for `None`. The names are not checked here.

    Raises `ArgumentTypeError` unless `config` is `None` or a mapping to whole numbers.
    """
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise ArgumentTypeError(f"gemm: config is {shown(config)}; it must be a dictionary of parameters, or None")
    return {str(name): _whole(str(name), value) for name, value in config.items()}


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        raise ArgumentTypeError(f"gemm: {name} in config is {shown(value)}, not a whole number") from error
