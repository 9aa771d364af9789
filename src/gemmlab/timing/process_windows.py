"""How a worker is started, halted and heard on Windows, which lacks signals and cannot wait for a pipe.

Never run on Windows by us: what is not its own is tested elsewhere with stand-ins.
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
"""CREATE_NEW_PROCESS_GROUP: an interrupt from the keyboard is for the parent, which then ends its workers."""


def start(command: Sequence[str], environment: Mapping[str, str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """A process with pipes to its input and output."""
    words, given = list(command), dict(environment)
    base = getattr(sys, "_base_executable", sys.executable)
    if words[0] == sys.executable and base != sys.executable:
        # In a virtual environment python.exe starts another process, and halting the first would not halt that one.
        words[0] = base
        given["__PYVENV_LAUNCHER__"] = sys.executable
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=given, creationflags=_NEW_GROUP
    )


def halt(process: subprocess.Popen[bytes]) -> None:
    """Stop all its threads where they are."""
    windows.suspend(_handle(process))


def go_on(process: subprocess.Popen[bytes]) -> None:
    """Let it run, if it was halted."""
    windows.resume(_handle(process))


def _handle(process: Any) -> int:
    return int(process._handle)  # noqa: SLF001 - nothing public gives it


class PipeReader:
    """Reads a pipe in a thread of its own, so that another can wait for what comes, for a time."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(pipe.fileno(),), daemon=True).start()

    def chunk(self, seconds: float) -> bytes:
        """What has come, empty at the end of the pipe. `TimeoutError` when nothing does."""
        try:
            return self._chunks.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None

    def _read(self, descriptor: int) -> None:
        try:
            while chunk := os.read(descriptor, 1 << 16):
                self._chunks.put(chunk)
        except OSError:
            # The pipe was closed while this waited for it.
            pass
        self._chunks.put(b"")
