"""A worker process that is stopped between requests, so that its threads do not spin while another worker is timed."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import gemmlab
from gemmlab.core.errors import PeerError
from gemmlab.timing import process_windows

STDERR_TAIL_BYTES = 2000
_WINDOWS = sys.platform == "win32"


class WorkerProcess:
    """One running worker; errors call it `name`. A context manager that kills it at the end.

    Where the system can pin processes, it is pinned to `cpus`, if there are any. Except on Windows it inherits the open
    `descriptors`. Raises `PeerError` if it cannot be started.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        cpus: Sequence[int] = (),
        descriptors: Sequence[int] = (),
    ) -> None:
        self.name = name
        self._pending = b""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        try:
            if _WINDOWS:
                self._process = process_windows.start(command, environment, self._stderr)
                self._reader = process_windows.PipeReader(self._output)
            else:
                self._process = self._started(command, environment, cpus, descriptors)
        except OSError as error:
            self._stderr.close()
            raise PeerError(f"{name} could not be started: {error}") from error

    def _started(
        self, command: Sequence[str], environment: Mapping[str, str], cpus: Sequence[int], descriptors: Sequence[int]
    ) -> subprocess.Popen[bytes]:
        with _affinity(cpus):
            return subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr,
                env=dict(environment), pass_fds=tuple(descriptors), process_group=0,
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the worker."""
        return self._process.pid

    def ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Let the worker run for one request, then stop it again; return its reply.

        Raises `PeerError` with the tail of its standard error when it dies, does not answer within `timeout_s` or
        answers no JSON object; it is dead afterwards.
        """
        self.send(request)
        return self.receive(timeout_s)

    def send(self, request: Mapping[str, Any]) -> None:
        """Let the worker run and send it a request; `receive` gets the reply, and other workers can start meanwhile.

        Raises `PeerError` when the worker has died.
        """
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        try:
            if _WINDOWS:
                process_windows.go_on(self._process)
            else:
                self._signal(signal.SIGCONT)
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._failed("died") from error

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """Return the reply to the request sent before, and stop the worker. Raises as `ask` does."""
        try:
            reply = json.loads(self._read_line(time.monotonic() + timeout_s))
            self._stop()
        except TimeoutError as error:
            raise self._failed(f"gave no answer within {timeout_s:g} s") from error
        except (OSError, EOFError) as error:
            raise self._failed("died") from error
        except ValueError as error:
            raise self._failed("answered nonsense") from error
        if not isinstance(reply, dict):
            raise self._failed("answered nonsense")
        return reply

    def close(self) -> None:
        """Kill the worker and close its pipes. May be called again."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()
        forget_openmp_registration(self.pid)

    def _signal(self, number: int) -> None:
        # Popen.send_signal polls first, so a process id that the system has reused is never signalled.
        self._process.send_signal(number)

    def _stop(self) -> None:
        if _WINDOWS:
            process_windows.halt(self._process)
            return
        self._signal(signal.SIGSTOP)
        if hasattr(os, "waitid"):
            # The process stops some time after the signal: wait, or its threads would still run in the next turn.
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def _read_line(self, deadline: float) -> bytes:
        while b"\n" not in self._pending:
            chunk = self._chunk(max(0.0, deadline - time.monotonic()))
            if not chunk:
                raise EOFError
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _chunk(self, seconds: float) -> bytes:
        """Return output of the worker, empty at its end. Raises `TimeoutError` if none comes within `seconds`."""
        if _WINDOWS:
            return self._reader.chunk(seconds)
        descriptor = self._output.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            if not selector.select(seconds):
                raise TimeoutError
        return os.read(descriptor, 1 << 16)

    @property
    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        return self._process.stdout

    def _failed(self, what: str) -> PeerError:
        if what == "died":
            with contextlib.suppress(subprocess.TimeoutExpired):
                what += f" with {_status(self._process.wait(2))}"
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - STDERR_TAIL_BYTES))
        tail = self._stderr.read().decode("utf-8", "replace").strip()
        self.close()
        return PeerError(f"{self.name} {what}" + (f"; it said: {tail}" if tail else ""))


def forget_openmp_registration(pid: int) -> None:
    """Unlink the file by which Intel's OpenMP in process `pid` detects a second copy of itself.

    A killed process would leave it in shared memory forever.
    """
    if hasattr(os, "getuid"):
        Path(f"/dev/shm/__KMP_REGISTERED_LIB_{pid}_{os.getuid()}").unlink(missing_ok=True)  # noqa: S108 - its own name


def worker_command(place: str, nbytes: int) -> list[str]:
    """Return the command line of a worker that maps the arena at `place`, `nbytes` long."""
    return [sys.executable, "-P", "-m", "gemmlab.timing.worker", str(os.getpid()), place, str(nbytes)]


def importable_here() -> str:
    """Return a `PYTHONPATH` under which a child process imports this same package."""
    root = str(Path(gemmlab.__file__).parent.parent)
    return os.pathsep.join([root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])


def _status(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


@contextlib.contextmanager
def _affinity(cpus: Sequence[int]) -> Any:
    """Pin this process to `cpus`, if there are any, within the block: a child started in it inherits them before its
    libraries count processors.
    """
    if not cpus or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
