"""Start, suspend and read a worker on Windows, which has no stop signal and no wait for a pipe with a timeout.

This code has not run on Windows: the logic is tested on other systems with stand-ins for the system's calls.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any

from gemmlab.core import windows

_NEW_GROUP = 0x200
"""CREATE_NEW_PROCESS_GROUP: only the parent gets a keyboard interrupt, and then ends its workers."""


def start(command: Sequence[str], environment: Mapping[str, str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a process with pipes to its standard input and output; its standard error goes to the file `errors`."""
    words, variables = list(command), dict(environment)
    base = getattr(sys, "_base_executable", sys.executable)
    if words[0] == sys.executable and base != sys.executable:
        # In a virtual environment python.exe starts another process, which suspending the first would not suspend.
        words[0] = base
        variables["__PYVENV_LAUNCHER__"] = sys.executable
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=variables, creationflags=_NEW_GROUP
    )


def halt(process: subprocess.Popen[bytes]) -> None:
    """Suspend all threads of the process."""
    windows.suspend(_handle(process))


def go_on(process: subprocess.Popen[bytes]) -> None:
    """Resume the process if it was suspended."""
    windows.resume(_handle(process))


def _handle(process: Any) -> int:
    return int(process._handle)  # noqa: SLF001 - nothing public gives it


class PipeReader:
    """A thread that reads a pipe, so that another thread can wait for its output with a timeout."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(pipe.fileno(),), daemon=True).start()

    def chunk(self, seconds: float) -> bytes:
        """Return the next bytes, empty at the end of the pipe. Raises `TimeoutError` if none come within `seconds`."""
        try:
            return self._chunks.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None

    def _read(self, descriptor: int) -> None:
        try:
            while chunk := os.read(descriptor, 1 << 16):
                self._chunks.put(chunk)
        except OSError:
            # The pipe was closed while this thread waited for it.
            pass
        self._chunks.put(b"")
