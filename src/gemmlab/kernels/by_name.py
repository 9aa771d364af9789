"""Kernels as they are named on the command line: by id, or a person's own `.cu` file with what is said about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.devices.device_name import DeviceName
from gemmlab.kernels.catalog import SOURCE_SUFFIX, find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.user_kernel import user_kernel


def is_own(name: str) -> bool:
    """Whether a name is that of a file."""
    return name.endswith(SOURCE_SUFFIX)


def kernel_named(name: str, flags: Mapping[str, Any] | None = None) -> Kernel:
    """The kernel of that id, or that in the file `name`; `flags` are facts of the file (`user_kernel`).

    Raises `UsageError`.
    """
    return user_kernel(Path(name), **(flags or {})) if is_own(name) else find_kernel(name)


def require_device(kernel: Kernel, device: DeviceName) -> Kernel:
    """The kernel, if it runs on that device; `UsageError` otherwise."""
    if kernel.device != device.kernels:
        hint = " (--device cuda or emulated)" if kernel.device == "cuda" else ""
        raise UsageError(f"{kernel.id} is a kernel for {kernel.device}{hint}, not for {device}")
    return kernel
