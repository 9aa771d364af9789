"""The catalog of kernels: every file in a kernel folder is one kernel; nothing is registered."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

from gemmlab.core.deprecation import warn_once
from gemmlab.core.errors import UsageError
from gemmlab.core.words import nearest
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.order import in_order

_HERE = Path(__file__).parent
SOURCE_SUFFIX = ".cu"
SOURCE_SUFFIXES = (SOURCE_SUFFIX, ".cuh")
"""Ends of the names of files that may be a user's own kernels."""


@cache
def all_kernels() -> tuple[Kernel, ...]:
    """Every kernel shipped, by operation and device, in ladder order (`order.in_order`).

    Raises `UsageError`, which names the file, for one that cannot be used or whose place on the ladder is unclear.
    """
    from gemmlab.kernels.cuda_kernel import shipped_kernel

    found = [_kernel_in(path) for path in sorted(_HERE.glob("*_cpu/*.py")) if path.stem != "__init__"]
    found += [shipped_kernel(path) for path in sorted(_HERE.glob(f"*_cuda/*{SOURCE_SUFFIX}"))]
    return tuple(in_order(found))


def _kernel_in(path: Path) -> Kernel:
    """Return the kernel that a file defines; `UsageError` names the file when it cannot be imported or defines none."""
    try:
        kernel = import_module(f"{__package__}.{path.parent.name}.{path.stem}").KERNEL
    except Exception as error:
        raise UsageError(f"kernel file {path} cannot be used: {type(error).__name__}: {error}") from error
    if not isinstance(kernel, Kernel):
        raise UsageError(f"kernel file {path}: KERNEL is a {type(kernel).__name__}, not a Kernel")
    return kernel


def ladder(op: str, device: str) -> tuple[Kernel, ...]:
    """The rungs for an operation on a family of devices, in order, side branches last."""
    return tuple(k for k in all_kernels() if (k.op, k.device) == (op, device) and k.step is not None)


@cache
def current_ids() -> Mapping[str, str]:
    """Present ids of kernels by the ids of earlier versions."""
    return {alias: kernel.id for kernel in all_kernels() for alias in kernel.aliases}


def current_id(name: str, *, notice: bool = True) -> str:
    """Return the present id of a kernel; any other name as it is. With `notice`, an earlier id gets a
    `DeprecationWarning`.
    """
    if name not in current_ids():
        return name
    if notice:
        warn_once(f"the kernel {name} is called {current_ids()[name]}; the next version drops the old name")
    return current_ids()[name]


def find_kernel(kernel_id: str) -> Kernel:
    """Return the kernel with that id, or in that `.cu` file; `UsageError` gives the nearest names otherwise.

    An id of an earlier version is taken, with one `DeprecationWarning`.
    """
    if kernel_id.endswith(SOURCE_SUFFIXES):
        from gemmlab.kernels.user_kernel import user_kernel

        return user_kernel(Path(kernel_id))
    wanted = current_id(kernel_id)
    for kernel in all_kernels():
        if kernel.id == wanted:
            return kernel
    names = [kernel.id for kernel in all_kernels()]
    raise UsageError(f"no kernel named {kernel_id!r}; {nearest(kernel_id, names, 'kernels')}")
