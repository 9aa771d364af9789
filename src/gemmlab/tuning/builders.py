"""Compilers in separate processes: they fill the cache of compiled code while the device measures."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context, resource_tracker
from typing import Any, Self

from gemmlab.core.errors import DeviceError, GemmlabError
from gemmlab.core.program import Artifact, Program
from gemmlab.kernels.by_name import NamedKernel, kernel_named
from gemmlab.kernels.kernel import Kernel
from gemmlab.timing.worker import die_with_parent

Key = tuple[str, str, tuple[str, ...]]
"""(name expression, target, options) of a program; its fingerprint stands for the options if it has none."""


@dataclass(frozen=True, slots=True)
class Code:
    """The outcome of one compilation."""

    seconds: float
    fault: str = ""
    """The reason why there is no code; empty if there is."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """`Artifact.resources` of the code, such as `registers`."""


class Builders:
    """A pool of `count` compiler processes for one kernel. A program that several configurations share is compiled
    once.

    The pool is a context manager. On exit, processes that still compile are ended; on Linux they also end with this
    process, even if it is killed.
    """

    def __init__(self, named: NamedKernel, count: int) -> None:
        self._named, self.count = named, count
        # Spawned, because a process that has opened a GPU cannot be forked.
        self._pool = ProcessPoolExecutor(
            count, mp_context=get_context("spawn"), initializer=_begin, initargs=(os.getpid(),)
        )
        self._under_way: dict[Key, Future[Code]] = {}
        self._paid = set[Key]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_of: object) -> None:
        processes = list((getattr(self._pool, "_processes", None) or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()

    def submit(self, instance: Mapping[str, int], target: str) -> Key:
        """Begin to compile a kernel's instance (its parameters and flags) for a target; return the key for `get`.

        Raises `UsageError`, and `DeviceError` also if the compilers' processes have ended.
        """
        program = self._named.kernel.program(instance, target)
        key = program.entry, program.target, program.options or (program.fingerprint,)
        if key not in self._under_way:
            flags = tuple(sorted(self._named.flags.items()))
            with _no_interrupts(), _named_end():
                self._under_way[key] = self._pool.submit(_compile, self._named.origin, flags, dict(instance), target)
        return key

    def idle(self, seconds: float) -> bool:
        """Wait until no compilation is under way, at most `seconds`; return whether none is."""
        wait(self._under_way.values(), max(0.0, min(seconds, _LONGEST_WAIT_S)))
        return all(future.done() for future in self._under_way.values())

    def soonest(self, keys: Sequence[Key], seconds: float) -> int:
        """Wait until one of several compilations ends, at most `seconds`.

        Returns the index of the first key whose compilation has ended, 0 if none has.
        """
        futures = [self._under_way[key] for key in keys]
        wait(futures, max(0.0, min(seconds, _LONGEST_WAIT_S)), FIRST_COMPLETED)
        return next((index for index, future in enumerate(futures) if future.done()), 0)

    def get(self, key: Key, seconds: float) -> Code | None:
        """Wait for a compilation and return its outcome; `None` if it has not ended after `seconds`.

        `Code.seconds` is 0 in further calls for the same program, so that its time counts once. Raises `DeviceError` if
        the compilers' processes have ended: that says nothing about the program.
        """
        future = self._under_way[key]
        wait([future], max(0.0, min(seconds, _LONGEST_WAIT_S)))
        if not future.done():
            return None
        with _named_end():
            error = future.exception()
            if error is not None and not isinstance(error, BrokenProcessPool):
                return Code(0.0, f"the compiler's process failed: {error}")
            found = future.result()
        seconds = 0.0 if key in self._paid else found.seconds
        self._paid.add(key)
        return Code(seconds, found.fault, found.resources)


_LONGEST_WAIT_S = 1e6


@contextmanager
def _named_end() -> Iterator[None]:
    """Raise `DeviceError` instead of the pool's own exception if its processes have ended."""
    try:
        yield
    except BrokenProcessPool as error:
        raise DeviceError(
            "the processes that compile have ended: killed, out of memory, or started by a script that searches when "
            "it is imported. Each of them imports the script that was started, so its calls stand under "
            'if __name__ == "__main__":'
        ) from error


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back. A process that is started meanwhile inherits this; without it, one that was stopped before
    `_begin` would print a traceback.
    """
    if sys.platform == "win32":
        yield
        return
    # It lets interrupts through when it starts.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(parent: int) -> None:
    die_with_parent(parent)
    # Ctrl-C reaches all processes of a terminal: the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _compile(origin: str, flags: tuple[tuple[str, Any], ...], instance: Mapping[str, int], target: str) -> Code:
    started = time.perf_counter()
    try:
        artifact = _build(_kernel(origin, flags).program(instance, target))
    except GemmlabError as error:
        return Code(time.perf_counter() - started, str(error))
    return Code(time.perf_counter() - started, "", dict(artifact.resources))


def _build(program: Program) -> Artifact:
    if program.language == "llvm":
        from gemmlab.devices.cpu import CpuDevice

        return CpuDevice().build(program)
    from gemmlab.toolchain.build_cuda import build

    return build(program)


_kernels: dict[str, Kernel] = {}


def _kernel(origin: str, flags: tuple[tuple[str, Any], ...]) -> Kernel:
    """Return the kernel of `NamedKernel.origin` and `flags`; each is read only once in this process."""
    key = repr((origin, flags))
    if key not in _kernels:
        _kernels[key] = kernel_named(origin, dict(flags))
    return _kernels[key]
