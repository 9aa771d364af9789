"""The process's state for compiled code: pool memory, worker threads, workspaces.

One block of memory holds the pool and the workspace slots; compiled code reaches it as the imported symbol
`gemmlab_runtime`. A slot is a flag (0: free, 1: taken or absent) and the address of a workspace. A call takes a free
slot with one atomic exchange, so Python threads that call at once never share a workspace.
"""

from __future__ import annotations

import _thread
import ctypes
import mmap
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from gemmlab.codegen.pool import AREA, AREA_BYTES, POOL_BYTES, SEQUENCE, WORD
from gemmlab.core.memory_room import private_memory

SYMBOL = "gemmlab_runtime"
SLOTS = 128
_SLOT_BYTES = 2 * WORD
SLOTS_AT = POOL_BYTES
WORKERS_AT = SLOTS_AT + SLOTS * _SLOT_BYTES
DEFAULT_THREADS_AT = WORKERS_AT + WORD
PYTHON_AT = DEFAULT_THREADS_AT + WORD
"""Offset of the addresses of Python objects that compiled entries compare with (`python_objects.PYTHON_WORDS`)."""
_BYTES = PYTHON_AT + 16 * WORD
HUGE_PAGE = 2 << 20
MOST_THREADS = 1024
"""The most threads of a call; a request for more counts as this many."""
_WORKERS_A_CORE = 4
"""The most workers that are started for each CPU of the machine."""

_T = TypeVar("_T")


def _immortal(item: _T) -> _T:
    """Return `item`, which is never freed from now on: workers still read it while an ending interpreter frees its
    modules.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))
    return item


def huge_pages(nbytes: int) -> int:
    """Return the address of `nbytes` zeroed bytes that are never freed, on 2 MiB pages if the system has them.

    A page is allocated when a thread first writes to it, so a worker's workspace lies in the memory of the worker's
    NUMA node. After a fork, parent and child have separate copies. Raises `MemoryError`.
    """
    try:
        memory = private_memory(nbytes + HUGE_PAGE)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"no {nbytes} bytes for a workspace: {error}") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(_immortal(memory)))
    return address + -address % HUGE_PAGE


class Runtime:
    """Pool, workers and workspaces of this process. After a fork the child starts with no workers."""

    def __init__(self) -> None:
        base = ctypes.addressof(_immortal(ctypes.create_string_buffer(_BYTES + 64)))
        self.address = base + -base % 64
        self._lock = threading.Lock()
        self._slots = 0
        self._worker_spaces: list[int] = []
        self._area = 0
        self._init: int | None = None
        self.workspace_bytes = 0
        for slot in range(SLOTS):
            self.word(SLOTS_AT + slot * _SLOT_BYTES).value = 1

    def word(self, offset: int) -> ctypes.c_int64:
        """Return the 64-bit word of the block at a byte offset, to read or write."""
        return ctypes.c_int64.from_address(self.address + offset)

    def start(self, pool_init: int, worker: int, workspace_bytes: int, default_threads: Callable[[], int]) -> None:
        """Prepare the pool with the compiled functions at these addresses, and add a workspace; later calls do nothing.

        `default_threads` returns the number of threads of a call that does not state one.

        Raises `MemoryError`.
        """
        with self._lock:
            if self._init is not None:
                return
            self.workspace_bytes = workspace_bytes
            self._worker = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(worker)
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(pool_init)(self.address)
            self.word(DEFAULT_THREADS_AT).value = default_threads()
            self._init = pool_init
        self.add_slot()

    @property
    def workers(self) -> int:
        """Number of worker threads that have been started."""
        return self.word(WORKERS_AT).value

    @property
    def default_threads(self) -> int:
        """Number of threads of a call that does not state a number."""
        return self.word(DEFAULT_THREADS_AT).value

    def ensure_workers(self, count: int) -> None:
        """Start workers until there are `count`, or as many as this machine may have (`_WORKERS_A_CORE`).

        If a thread or its workspace cannot be had, no more are started, and nothing is raised: a call works with the
        threads that there are.
        """
        if self.workers >= count:
            return
        count = min(count, _WORKERS_A_CORE * (os.cpu_count() or 1))
        with self._lock:
            self._share_memory()
            while self.workers < count:
                # A workspace exists already if a thread could not be started or was lost in a fork.
                if len(self._worker_spaces) == self.workers:
                    try:
                        self._worker_spaces.append(huge_pages(self.workspace_bytes))
                    except MemoryError:
                        return
                workspace = self._worker_spaces[self.workers]
                sequence = self.word(SEQUENCE).value
                # Count before the start: after an interrupt in between, another worker would get the same workspace.
                self.word(WORKERS_AT).value += 1
                try:
                    _thread.start_new_thread(self._worker, (self.address, workspace, sequence))
                except RuntimeError:
                    # The interpreter is ending or the thread limit is reached.
                    self.word(WORKERS_AT).value -= 1
                    return

    def _share_memory(self) -> None:
        """Map the memory that the threads of a call share, unless it is there; if that fails, each thread packs for
        itself.
        """
        if not self._area:
            with suppress(MemoryError):
                self._area = huge_pages(AREA_BYTES)
            self.word(AREA).value = self._area

    def add_slot(self) -> bool:
        """Add one more workspace for callers; return `False` if there are `SLOTS` already. Raises `MemoryError`."""
        with self._lock:
            if self._slots == SLOTS:
                return False
            at = SLOTS_AT + self._slots * _SLOT_BYTES
            self.word(at + WORD).value = huge_pages(self.workspace_bytes)
            self._slots += 1
            self.word(at).value = 0
            return True

    def after_fork(self) -> None:
        """Reset the state in a forked child, which has no other thread: no workers, no call in progress."""
        self._lock = threading.Lock()
        ctypes.memset(self.address, 0, POOL_BYTES)
        self.word(AREA).value = self._area
        self.word(WORKERS_AT).value = 0
        for slot in range(self._slots):
            self.word(SLOTS_AT + slot * _SLOT_BYTES).value = 0
        if self._init is not None:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._init)(self.address)


_runtime: Runtime | None = None
_runtime_lock = threading.Lock()


def runtime() -> Runtime:
    """Return the one runtime of this process, made by the first call."""
    global _runtime
    with _runtime_lock:
        if _runtime is None:
            _runtime = Runtime()
        return _runtime


def _after_fork_in_child() -> None:
    global _runtime_lock
    _runtime_lock = threading.Lock()
    if _runtime is not None:
        _runtime.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
