"""A lock that a fork waits for, so that no child process starts in the middle of work under the lock."""

from __future__ import annotations

# A fork takes the locks of `before` hooks in the reverse order of their registration. Logging has such a hook, and what
# is guarded here logs: its lock must be taken after ours, so it is registered before.
import logging  # noqa: F401
import os
import threading


def fork_lock() -> threading.RLock:
    """Return a new lock which each fork of this process takes first and which is free in parent and child after it.

    What runs under the lock may wait for no other lock that a fork takes before it: one whose hook is registered later.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
