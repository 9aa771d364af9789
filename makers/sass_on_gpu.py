"""Run changed machine code on a GPU in a child process, which may hang or die.

`sass_mutations.py` and `sass_latency_probe.py` use it. The child has its own CUDA context; if it does not answer in
time or faults, it is ended and the next request starts another one.
"""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import numpy as np
import numpy.typing as npt

from gemmlab.core.errors import GemmlabError
from gemmlab.core.program import Artifact
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.toolchain.cache import encode
from gemmlab.verify.changed_code import build_of

SECONDS = 1.0
"""Time limit of a request to the child. Its runs take milliseconds, so a child that has not answered by then hangs."""
START_SECONDS = 120.0
HUNG, FAULT = "hung", "fault"


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel in a configuration, and the size of a problem."""

    kernel: str
    size: str
    arch: str
    config: Mapping[str, int] = field(default_factory=dict)


def packed(artifact: Artifact) -> npt.NDArray[np.uint8]:
    """Return an artifact as bytes; of its texts it keeps the disassembly alone."""
    return np.frombuffer(encode(replace(artifact, texts={"sass": artifact.texts["sass"]})), np.uint8)


def _serve(connection: Connection, subject: Subject, artifact: Artifact | None, device_name: str) -> None:
    device = open_device(device_name)
    build = build_of(find_kernel(subject.kernel), subject.arch, subject.size, subject.config, artifact)
    connection.send("ready")
    while True:
        code, runs = connection.recv()
        try:
            bound = build.bind(code, device)
            digests = []
            for _ in range(runs):
                bound.run()
                digests.append(hashlib.sha256(build.result(bound).tobytes()).hexdigest()[:16])
            for buffer in bound.buffers.values():
                device.free(buffer)
            connection.send(digests)
        except GemmlabError as error:
            connection.send(f"{FAULT}: {error}")
            return


class GpuRunner:
    """A runner of cubins of one subject in a child process. If it gets the subject's artifact, it compiles nothing."""

    def __init__(self, subject: Subject, device: str = "cuda", artifact: Artifact | None = None) -> None:
        self._subject, self._device, self._artifact = subject, device, artifact
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def run(self, code: bytes, runs: int) -> list[str] | str:
        """Run a cubin `runs` times; return a digest of each result, or `HUNG`, or a text that begins with `FAULT`."""
        connection = self._started()
        connection.send((code, runs))
        try:
            if not connection.poll(SECONDS):
                self.end()
                return HUNG
            answer: list[str] | str = connection.recv()
        except (EOFError, OSError):
            answer = FAULT
        if isinstance(answer, str):
            self.end()
        return answer

    def _started(self) -> Connection:
        if self._process is not None and self._process.is_alive() and self._connection is not None:
            return self._connection
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(
            target=_serve, args=(theirs, self._subject, self._artifact, self._device), daemon=True
        )
        process.start()
        theirs.close()
        self._process, self._connection = process, mine
        if not mine.poll(START_SECONDS) or mine.recv() != "ready":
            raise SystemExit(f"{self._subject.kernel}: the child process does not start")
        return mine

    def end(self) -> None:
        """End the child process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._connection = None
