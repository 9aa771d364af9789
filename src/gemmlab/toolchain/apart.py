"""Compile foreign code in a child process: NVRTC may crash on wrong code, which would end this process.

A child waits for the next program when it is done, because its start takes a quarter of a second.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.core.program import Artifact, Program
from gemmlab.toolchain import compile_child, disassembly
from gemmlab.toolchain.cache import decode

_ERRORS = {error.__name__: error for error in (CompileError, NoCompilerError)}
_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(slots=True)
class _Children:
    """The child processes that wait for a program (`idle`)."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    idle: list[subprocess.Popen[bytes]] = field(default_factory=list)
    owner: tuple[int, dict[str, str]] = (0, {})
    """The id of the process that started the children, and its environment (`_environment`) at that time."""

    def take(self) -> subprocess.Popen[bytes]:
        """Return an idle child, or a new one if there is none.

        Children that were started in another environment are ended; those of the parent before a fork are forgotten.
        """
        owner = os.getpid(), _environment()
        with self.lock:
            if owner != self.owner:
                # After a fork, the parent's children are not children of this process.
                stale, self.idle, self.owner = self.idle if owner[0] == self.owner[0] else [], [], owner
                for child in stale:
                    _end(child)
            while self.idle:
                child = self.idle.pop()
                if child.poll() is None:
                    return child
                _end(child)
        return subprocess.Popen(
            [sys.executable, "-m", compile_child.__name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=owner[1] | {"PYTHONPATH": os.pathsep.join(filter(None, [str(_PACKAGE.parent), *sys.path]))},
        )  # fmt: skip

    def put(self, child: subprocess.Popen[bytes]) -> None:
        """Add a child to the idle ones."""
        with self.lock:
            self.idle.append(child)

    def end(self) -> None:
        """End all idle children that this process started."""
        with self.lock:
            own, self.idle = self.idle if self.owner[0] == os.getpid() else [], []
        for child in own:
            _end(child)


class _BreakdownError(Exception):
    """The child process ended without an answer; the usual reason is a crash of the compiler."""


def _environment() -> dict[str, str]:
    """Return this process's environment without the name of the running test, which pytest writes there: with it, each
    test would start a child of its own.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


_children = _Children()
atexit.register(_children.end)


def is_foreign(program: Program) -> bool:
    """Return whether a program should be compiled in a child: its source is no file of this package.

    False if no child can be started, as Python's executable is unknown.
    """
    return bool(sys.executable) and not (program.path and Path(program.path).resolve().is_relative_to(_PACKAGE))


def compile_apart(program: Program) -> Artifact:
    """Compile a program in a child process.

    Raises as `compilation.compile_cubin` does, and `CompileError` with a possible reason if the compiler crashes.
    """
    try:
        return _compiled(program)
    except _BreakdownError as breakdown:
        # If it need not compile the instance, the compiler often reports the error in the source.
        try:
            _compiled(replace(program, entry=""))
            reason = "it does not crash without that instance"
        except CompileError as error:
            reason = str(error).partition("\n")[2]
        except _BreakdownError:
            reason = "are all headers included that its template arguments need?"
        raise CompileError(f"{breakdown}\n{reason}") from None


def _compiled(program: Program) -> Artifact:
    data = compile_child.message(program)
    child = _children.take()
    assert child.stdin is not None  # noqa: S101 - narrows the type
    assert child.stdout is not None  # noqa: S101 - narrows the type
    try:
        compile_child.write(child.stdin, data)
        found = compile_child.read(child.stdout)
    except OSError:
        found = None
    except BaseException:
        _end(child, kill=True)
        raise
    if found is None:
        raise _BreakdownError(_breakdown(program, _end(child)))
    _children.put(child)
    if found[:1] == compile_child.ARTIFACT:
        return disassembly.with_text(decode(found[1:]))
    error = json.loads(found[1:])
    raise _ERRORS[error["kind"]](error["text"])


def _breakdown(program: Program, status: int) -> str:
    how = signal.Signals(-status).name if status < 0 else f"status {status}"
    what = f"{program.kernel} ({program.entry}) for {program.target} does not compile"
    return f"{what}: the compiler itself crashed ({how})"


def _end(child: subprocess.Popen[bytes], *, kill: bool = False) -> int:
    """End a child, by closing its streams or by `kill`, and return its exit status."""
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            try:
                stream.close()
            except OSError:
                # The child ended before it read all input.
                continue
    if kill:
        child.kill()
    return child.wait()
