"""Kernels by file: whatever lies in a kernel folder is in the catalog, nothing is registered."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.core.words import nearest
from gemmlab.kernels.kernel import Kernel

_HERE = Path(__file__).parent
SOURCE_SUFFIX = ".cu"


@cache
def all_kernels() -> tuple[Kernel, ...]:
    """Every kernel shipped, in ladder order (operation, device, step, id)."""
    from gemmlab.kernels.cuda_kernel import shipped_kernel

    found = [_kernel_in(path) for path in sorted(_HERE.glob("*_cpu/*.py")) if path.stem != "__init__"]
    found += [shipped_kernel(path) for path in sorted(_HERE.glob(f"*_cuda/*{SOURCE_SUFFIX}"))]
    last = max((kernel.step for kernel in found if kernel.step is not None), default=0) + 1
    return tuple(sorted(found, key=lambda k: (k.op, k.device, last if k.step is None else k.step, k.id)))


def _kernel_in(path: Path) -> Kernel:
    """The kernel a file defines; `UsageError` names the file when it cannot be imported or defines none."""
    try:
        kernel = import_module(f"{__package__}.{path.parent.name}.{path.stem}").KERNEL
    except Exception as error:
        raise UsageError(f"kernel file {path} cannot be used: {type(error).__name__}: {error}") from error
    if not isinstance(kernel, Kernel):
        raise UsageError(f"kernel file {path}: KERNEL is a {type(kernel).__name__}, not a Kernel")
    return kernel


def ladder(op: str, device: str) -> tuple[Kernel, ...]:
    """The rungs for an operation on a family of devices, in order."""
    return tuple(k for k in all_kernels() if (k.op, k.device) == (op, device) and k.step is not None)


def find_kernel(kernel_id: str) -> Kernel:
    """The kernel of that id, or that of a file if it ends in `.cu`; `UsageError` with the nearest names otherwise."""
    if kernel_id.endswith(SOURCE_SUFFIX):
        from gemmlab.kernels.user_kernel import user_kernel

        return user_kernel(Path(kernel_id))
    for kernel in all_kernels():
        if kernel.id == kernel_id:
            return kernel
    names = [kernel.id for kernel in all_kernels()]
    raise UsageError(f"no kernel named {kernel_id!r}; {nearest(kernel_id, names, 'kernels')}")
