"""Sleep and wake-up of the pool's workers: a lock and a condition variable of the system, called from compiled code.

They are a mutex and a condition variable of POSIX threads, or those of Windows (SRWLOCK). Each has two cache lines,
more than any system needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.ir.function import Function
from gemmlab.ir.target import Target
from gemmlab.ir.types import I8, I32, VOID, pointer
from gemmlab.ir.values import Value

_MEMORY = pointer(I8)
_FOREVER = -1
"""The timeout INFINITE on Windows."""


@dataclass(frozen=True, slots=True)
class Sleeping:
    """Emitter of the system's calls on a lock and a condition variable; `lock_at` and `condition_at` are their byte
    offsets in the pool's memory.
    """

    windows: bool
    lock_at: int
    condition_at: int

    @staticmethod
    def on(target: Target, lock_at: int, condition_at: int) -> Sleeping:
        """Return the emitter for the system of `target`."""
        return Sleeping(target.windows, lock_at, condition_at)

    def init(self, fn: Function, pool: Value) -> None:
        """Emit the initialisation of the lock and the condition variable, before any other call."""
        if self.windows:
            fn.call_external("InitializeSRWLock", VOID, (_MEMORY,), pool + self.lock_at)
            fn.call_external("InitializeConditionVariable", VOID, (_MEMORY,), pool + self.condition_at)
        else:
            fn.call_external("pthread_mutex_init", I32, (_MEMORY, _MEMORY), pool + self.lock_at, 0)
            fn.call_external("pthread_cond_init", I32, (_MEMORY, _MEMORY), pool + self.condition_at, 0)

    def lock(self, fn: Function, pool: Value) -> None:
        """Emit the wait for the lock, which the thread then holds."""
        if self.windows:
            fn.call_external("AcquireSRWLockExclusive", VOID, (_MEMORY,), pool + self.lock_at)
        else:
            fn.call_external("pthread_mutex_lock", I32, (_MEMORY,), pool + self.lock_at)

    def unlock(self, fn: Function, pool: Value) -> None:
        """Emit the release of the lock."""
        if self.windows:
            fn.call_external("ReleaseSRWLockExclusive", VOID, (_MEMORY,), pool + self.lock_at)
        else:
            fn.call_external("pthread_mutex_unlock", I32, (_MEMORY,), pool + self.lock_at)

    def wait(self, fn: Function, pool: Value) -> None:
        """Emit a sleep that ends with `wake_all`, or earlier without a reason. The thread must hold the lock, which is
        free while the thread sleeps and held by it afterwards.
        """
        where = pool + self.condition_at, pool + self.lock_at
        if self.windows:
            fn.call_external("SleepConditionVariableSRW", I32, (_MEMORY, _MEMORY, I32, I32), *where, _FOREVER, 0)
        else:
            fn.call_external("pthread_cond_wait", I32, (_MEMORY, _MEMORY), *where)

    def wake_all(self, fn: Function, pool: Value) -> None:
        """Emit the call that wakes all threads in `wait`."""
        if self.windows:
            fn.call_external("WakeAllConditionVariable", VOID, (_MEMORY,), pool + self.condition_at)
        else:
            fn.call_external("pthread_cond_broadcast", I32, (_MEMORY,), pool + self.condition_at)

    def let_others_run(self, fn: Function) -> None:
        """Emit the call that gives up the rest of this thread's time slice."""
        fn.call_external("SwitchToThread" if self.windows else "sched_yield", I32, ())
