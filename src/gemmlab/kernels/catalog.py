"""The catalog of kernels: every file in a kernel folder is one kernel, without registration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.core.warning import warn_once
from gemmlab.core.words import nearest_of_many
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.order import START, PlaceError, in_order

_HERE = Path(__file__).parent
_AFTER = re.compile(r"^\s*after\s*=\s*[\"'](\w*)[\"']", re.MULTILINE)
_BRANCH = re.compile(r"^\s*branch\s*=\s*[tT]rue", re.MULTILINE)
_CPU_SUFFIX = ".py"
SOURCE_SUFFIX = ".cu"
SOURCE_SUFFIXES = (SOURCE_SUFFIX, ".cuh")
"""Suffixes of files that may be a user's kernels."""
_SOLUTION = ".toml"


def all_kernels() -> tuple[Kernel, ...]:
    """Return every shipped kernel, by operation and device, in ladder order (`order.in_order`), without
    `broken_kernels`.
    """
    return _catalog().kernels


def broken_kernels() -> Mapping[str, str]:
    """Return the fault of each file in a kernel folder that cannot be used or has no place on its ladder, by kernel
    id.
    """
    return _catalog().broken


def noted_broken() -> tuple[str, ...]:
    """Return the faults of `broken_kernels` if the folders have been read already, else none. It never reads them."""
    return tuple(_catalog().broken.values()) if _catalog.cache_info().currsize else ()


@dataclass(frozen=True)
class _Catalog:
    kernels: tuple[Kernel, ...]
    broken: Mapping[str, str]

    @cached_property
    def by_id(self) -> Mapping[str, Kernel]:
        return {kernel.id: kernel for kernel in self.kernels}


@cache
def _catalog() -> _Catalog:
    """Read the kernel folders; return the usable kernels, and the faults of the other files.

    A faulty file removes no other kernel: the rungs after it come after the rung before it.
    """
    from gemmlab.kernels.cuda_kernel import shipped_kernel

    found, broken, gaps = list[Kernel](), dict[str, str](), dict[str, tuple[str, bool]]()
    readers = ((f"*_cpu/*{_CPU_SUFFIX}", _kernel_in), (f"*_cuda/*{SOURCE_SUFFIX}", shipped_kernel))
    for pattern, read in readers:
        for path in sorted(_HERE.glob(pattern)):
            if path.stem != "__init__":
                try:
                    found.append(read(path))
                except UsageError as error:
                    broken[path.stem] = str(error)
                    gaps[path.stem] = _stated_place(path)
    found = [_bridged(kernel, gaps) for kernel in found]
    while True:
        try:
            return _Catalog(tuple(in_order(found)), broken)
        except PlaceError as error:
            broken |= {kernel.id: str(error) for kernel in error.misplaced}
            found = [kernel for kernel in found if not any(kernel is each for each in error.misplaced)]


def _stated_place(path: Path) -> tuple[str, bool]:
    """Return the `after` that the text of an unusable file states (`START` if none), and whether it is a branch."""
    text = path.read_text(encoding="utf-8", errors="replace")
    after = _AFTER.search(text)
    return after[1] if after else START, bool(_BRANCH.search(text))


def _bridged(kernel: Kernel, gaps: Mapping[str, tuple[str, bool]]) -> Kernel:
    """Return the kernel with the `after` and `branch` that it has on a ladder without the rungs `gaps`.

    `gaps` has the same two facts of each missing rung by id.
    """
    passed = set[str]()
    while kernel.after is not None and kernel.after in gaps and kernel.after not in passed:
        passed.add(kernel.after)
        after, branch = gaps[kernel.after]
        kernel = replace(kernel, after=after, branch=kernel.branch or branch)
    return kernel


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
    """Return the rungs for an operation on a family of devices, in order, side branches last."""
    return tuple(k for k in all_kernels() if (k.op, k.device) == (op, device) and k.step is not None)


@cache
def current_ids() -> Mapping[str, str]:
    """Return the current ids of kernels by the ids of earlier versions."""
    return {alias: kernel.id for kernel in all_kernels() for alias in kernel.aliases}


def current_id(name: str, *, notice: bool = True) -> str:
    """Return the current id of a kernel; any other name unchanged. With `notice`, an earlier id gives a
    `DeprecationWarning`.
    """
    if name not in current_ids():
        return name
    if notice:
        warn_once(f"the kernel {name} is called {current_ids()[name]}; the next version drops the old name")
    return current_ids()[name]


def find_kernel(kernel_id: str) -> Kernel:
    """Return the kernel with an id, or the one in a file whose name ends in `.cu` or `.cuh`.

    An id of an earlier version is accepted, with one `DeprecationWarning`. `UsageError` names the fault of the kernel's
    file, says that a file is no kernel, or gives the nearest names.
    """
    if kernel_id.endswith(SOURCE_SUFFIXES):
        from gemmlab.kernels.user_kernel import user_kernel

        return user_kernel(Path(kernel_id))
    wanted = current_id(kernel_id)
    if (found := _catalog().by_id.get(wanted)) is not None:
        return found
    if wanted in broken_kernels():
        raise UsageError(broken_kernels()[wanted])
    if kernel_id.endswith(_SOLUTION):
        raise UsageError(
            f"{kernel_id} chooses values for an exercise and is no kernel: gemmlab check {kernel_id} judges it, "
            f"gemmlab cache {kernel_id} shows its misses"
        )
    # Ids have no dots.
    if Path(kernel_id).suffix[1:].isidentifier() or Path(kernel_id).is_file():
        raise UsageError(
            f"{kernel_id!r} is no kernel file: kernels are ids, or files of CUDA C++ that end in "
            f"{' or '.join(SOURCE_SUFFIXES)}; explain, sass and launch take .cubin and .ptx too, check takes .cubin"
        )
    names = [kernel.id for kernel in all_kernels()]
    raise UsageError(f"no kernel named {kernel_id!r}; {nearest_of_many(kernel_id, names, '`gemmlab list`')}")
