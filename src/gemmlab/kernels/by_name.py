"""Kernels as the command line names them: by id, or by a user's `.cu` file and the facts stated about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.devices.device_name import DeviceName
from gemmlab.kernels.catalog import SOURCE_SUFFIXES, find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.user_kernel import user_kernel


@dataclass(frozen=True, slots=True)
class NamedKernel:
    """A kernel with the name by which another process finds it.

    A kernel contains functions, which cannot be sent to another process: a worker looks it up, or reads the user's
    file, itself.
    """

    kernel: Kernel
    file: str = ""
    """The path of a user's file as the user wrote it; empty for a kernel of the catalog."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the file that the user stated by flags (`user_kernel`); empty for a kernel of the catalog."""

    @property
    def origin(self) -> str:
        """The name under which `kernel_named` finds it from any folder: the file's absolute path, or the id."""
        return str(Path(self.file).resolve()) if self.file else self.kernel.id


def is_own(name: str) -> bool:
    """Return whether a name is that of a CUDA source file: it ends in `.cu` or `.cuh`."""
    return name.endswith(SOURCE_SUFFIXES)


def kernel_named(name: str, flags: Mapping[str, Any] | None = None) -> Kernel:
    """Return the kernel with that id, or the one in the file `name`; `flags` are facts about the file (`user_kernel`).

    Raises `UsageError`.
    """
    return user_kernel(Path(name), **(flags or {})) if is_own(name) else find_kernel(name)


def named_kernel(name: str, flags: Mapping[str, Any] | None = None) -> NamedKernel:
    """Return the kernel of `kernel_named` together with its name. Raises `UsageError`."""
    kernel = kernel_named(name, flags)
    return NamedKernel(kernel, name, flags or {}) if is_own(name) else NamedKernel(kernel)


def named_kernels(names: Iterable[str], flags: Mapping[str, Any] | None = None) -> dict[str, NamedKernel]:
    """Return kernels by name, in the order of `names`, each read once. Raises `UsageError`."""
    return {name: named_kernel(name, flags) for name in dict.fromkeys(names)}


def require_device(kernel: Kernel, device: DeviceName) -> Kernel:
    """Return the kernel if it runs on that device; else raise `UsageError`."""
    if kernel.device != device.kernels:
        hint = " (--device cuda or emulated)" if kernel.device == "cuda" else ""
        raise UsageError(f"{kernel.id} is a kernel for {kernel.device}{hint}, not for {device}")
    return kernel
