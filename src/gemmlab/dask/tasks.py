"""The functions that run on workers: a product of two blocks added to an earlier sum, and a sum of blocks."""

from __future__ import annotations

import multiprocessing
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemmlab.api import gemm
from gemmlab.core.errors import UsageError
from gemmlab.core.hardware import physical_cores
from gemmlab.core.version import __version__


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of a call that hold for all of its tasks."""

    alpha: float
    beta: float
    precision: str
    threads: int | None
    """Threads of a task, as the caller requested; `None` if the caller did not."""
    sharing: int
    """Tasks that run at the same time on one host; 0 if that is not known."""
    version: str = __version__


def product(a: Any, b: Any, before: Any, settings: Settings, *, first: bool) -> Any:
    """Return alpha * a b + `before`. For the `first` block along k, `before` is c and is multiplied by beta. If
    `before` is `None`, nothing is added.

    Raises `UsageError` if this worker has another version of gemmlab than the caller: its sums could differ.
    """
    if settings.version != __version__:
        raise UsageError(
            f"gemmlab.dask: the graph was made by gemmlab {settings.version}, and this worker has {__version__}; "
            "install the same version on both"
        )
    factor = 0.0 if before is None else settings.beta if first else 1.0
    threads = threads_of(settings) if isinstance(a, np.ndarray) else None
    return gemm(a, b, c=before, alpha=settings.alpha, beta=factor, precision=settings.precision, threads=threads)


def total(first: Any, second: Any, *others: Any) -> Any:
    """Return the sum of blocks, added one after the other."""
    found = first + second
    for one in others:
        found += one
    return found


def threads_of(settings: Settings) -> int | None:
    """Return the threads of one task: as the caller requested, or such that all tasks of a host together use its cores.

    If the number of these tasks is not known, it is `None` (all cores) in the main thread of the main process, and 1
    elsewhere.
    """
    if settings.threads is not None:
        return settings.threads
    if settings.sharing:
        return max(1, physical_cores() // settings.sharing)
    # The synchronous scheduler runs one task at a time, others as many as there are processors unless told otherwise.
    alone = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
    return None if alone else 1
