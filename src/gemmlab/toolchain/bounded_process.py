"""Run external programs with a time limit: no program keeps running if it hangs.

On Linux with util-linux's setpriv, none keeps running if this process ends, either.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

PATIENCE = 15
"""Seconds of wall time allowed for each second of the limit of processor time.

On a machine with a load of 15, valid code took 35 s.
"""


def run(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a program for at most `PATIENCE` times `seconds` of wall time, and on Linux `seconds` of processor time.

    Raises `OSError` if it cannot be started (if setpriv starts it, the return code is 126 or 127 instead), and
    `subprocess.TimeoutExpired` if it reaches a limit or is killed otherwise. At the limit of wall time, it and, except
    on Windows, its child processes are killed. At the limit of processor time, in whole seconds rounded up, the kernel
    kills the program alone. With setpriv (`_tie`) the program is also killed when the calling thread ends.
    """
    group: dict[str, Any] = {} if sys.platform == "win32" else {"process_group": 0}
    with subprocess.Popen(
        [*_tie(), *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8", errors="replace", **group,
    ) as process:  # fmt: skip
        _limit(process.pid, seconds)
        try:
            out, errors = process.communicate(timeout=PATIENCE * seconds)
        except BaseException:
            _end(process)
            raise
    if sys.platform != "win32" and process.returncode == -signal.SIGKILL:
        raise subprocess.TimeoutExpired(list(command), seconds)
    return subprocess.CompletedProcess(list(command), process.returncode, out, errors)


@cache
def _tie() -> tuple[str, ...]:
    """Return the words to put before a command so that the kernel kills the program when the thread that waits ends.

    They are empty without util-linux's setpriv. In a process with threads no Python code may run between fork and exec,
    so setpriv makes the request to the kernel.
    """
    program = shutil.which("setpriv") if sys.platform == "linux" else None
    tie = (program, "--pdeathsig", "KILL") if program else ()
    # Busybox's setpriv lacks this option.
    if tie and subprocess.run([*tie, "true"], capture_output=True, check=False).returncode:
        return ()
    return tie


def _limit(process: int, seconds: float) -> None:
    """Have the kernel end a process after `seconds` of processor time; only on Linux."""
    if sys.platform == "linux":
        import resource

        most = math.ceil(seconds)
        try:
            resource.prlimit(process, resource.RLIMIT_CPU, (most, most))
        except (OSError, ValueError):
            return  # The process has ended, or has a lower limit already.


def _end(process: subprocess.Popen[str]) -> None:
    """Kill a program and its child processes; on Windows the program alone."""
    if sys.platform == "win32":
        process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
