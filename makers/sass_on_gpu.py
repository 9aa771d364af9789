"""Run changed machine code on a GPU in a child process, which may hang or die.

For `sass_mutations.py` and `sass_latency_probe.py`. The child has its own CUDA context. A child that does not answer in
time or faults is ended; the next request goes to a second child, which was started beside the first.
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

SECONDS = 5.0
"""A request takes milliseconds, more while kernels of other children hang; one that takes longer than this hangs."""
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


@dataclass(frozen=True, slots=True)
class _Child:
    process: BaseProcess
    connection: Connection

    def end(self) -> None:
        self.process.kill()
        self.process.join()


class GpuRunner:
    """A runner of cubins of one subject in a child process. If it gets the subject's artifact, it compiles nothing."""

    def __init__(self, subject: Subject, device: str = "cuda", artifact: Artifact | None = None) -> None:
        self._subject, self._device, self._artifact = subject, device, artifact
        self._child: _Child | None = None
        self._spare: _Child | None = None

    def run(self, code: bytes, runs: int) -> list[str] | str:
        """Return a digest of each result, or `HUNG`, or a text that begins with `FAULT`."""
        child = self._child = self._child or self._next()
        child.connection.send((code, runs))
        try:
            answer: list[str] | str = child.connection.recv() if child.connection.poll(SECONDS) else HUNG
        except (EOFError, OSError):
            answer = FAULT
        if isinstance(answer, str):
            child.end()
            self._child = None
        return answer

    def _next(self) -> _Child:
        """Return a child that is ready, and start the one after it."""
        child = self._spare or self._start()
        self._spare = self._start()
        if not child.connection.poll(START_SECONDS) or child.connection.recv() != "ready":
            raise SystemExit(f"{self._subject.kernel}: the child process does not start")
        return child

    def _start(self) -> _Child:
        context = multiprocessing.get_context("spawn")
        mine, theirs = context.Pipe()
        process = context.Process(
            target=_serve, args=(theirs, self._subject, self._artifact, self._device), daemon=True
        )
        process.start()
        theirs.close()
        return _Child(process, mine)

    def end(self) -> None:
        """End the child processes."""
        for child in (self._child, self._spare):
            if child is not None:
                child.end()
        self._child = self._spare = None
