"""The workers of all contestants around one arena: start, prepare, take turns, and lose those that fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from gemmlab.core.errors import PeerError
from gemmlab.measure.arena import Arena
from gemmlab.measure.families import Timing, family_of
from gemmlab.measure.peers import Spec, worker_cpus, worker_environment
from gemmlab.measure.process import WorkerProcess, importable_here, worker_command
from gemmlab.ops.op import Op

Launcher = Callable[[Spec, int, Arena], WorkerProcess]
"""(contestant, threads, arena) -> a running worker."""


def start_worker(spec: Spec, threads: int, arena: Arena) -> WorkerProcess:
    """A worker of this installation, pinned where it is this machine that computes, in an environment of our making."""
    environment = worker_environment(spec, threads, os.environ)
    environment["PYTHONPATH"] = importable_here()
    return WorkerProcess(
        spec.name, worker_command(arena.fd, arena.nbytes), environment=environment,
        cpus=worker_cpus(threads) if family_of(spec.device).host_threads else (), descriptors=[arena.fd],
    )  # fmt: skip


@dataclass
class Crew:
    """Workers by contestant. `lost` holds why a contestant is gone, `skipped` what it cannot do.

    A context manager: every worker is killed at its end, whatever happened.
    """

    op: Op
    problems: Sequence[Any]
    arena: Arena
    threads: int
    timing: Timing
    launcher: Launcher = start_worker
    workers: dict[str, WorkerProcess] = field(default_factory=dict)
    facts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    skipped: dict[tuple[str, int], str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers.values():
            worker.close()

    def join(self, spec: Spec) -> bool:
        """Start a contestant; False (and an entry in `lost`) when it does not come up."""
        try:
            self.workers[spec.name] = self.launcher(spec, self.threads, self.arena)
        except PeerError as error:
            self.lost[spec.name] = str(error)
            return False
        return self._ask(spec.name, {"command": "open", "spec": spec.to_json()}) is not None

    def prepare(self, name: str, index: int) -> bool:
        """Have a contestant set up problem `index` and run it once; False when it cannot or is lost."""
        problem = self.problems[index]
        request = {
            "command": "prepare",
            "index": index,
            "op": self.op.name,
            "problem": problem.to_json(),
            "flops": self.op.flops(problem),
            "scalars": {key: value.item() for key, value in self.op.scalars(problem).items()},
            "operands": [placed.to_json() for placed in self.arena.placed[index].values()],
            "threads": self.threads,
        }
        reply = self._ask(name, request)
        if reply is None:
            return False
        if "unsupported" in reply:
            self.skipped[name, index] = reply["unsupported"]
            return False
        self.facts[name] = reply["facts"]
        return True

    def can(self, name: str, index: int) -> bool:
        """Whether the contestant still lives and does problem `index`."""
        return name in self.workers and (name, index) not in self.skipped

    def run(self, name: str, index: int) -> bool:
        """Execute once, untimed; False when the contestant is lost."""
        return self._ask(name, {"command": "run", "index": index}) is not None

    def turn(self, name: str, index: int) -> dict[str, Any] | None:
        """One turn's times (see `contestants.Turn`), `None` when the contestant is lost."""
        timing = self.timing
        request = {
            "command": "turn", "index": index, "min_us": timing.min_us, "warm_us": timing.warm_us,
            "inner_us": timing.inner_us, "raw_limit": timing.raw_limit,
        }  # fmt: skip
        return self._ask(name, request)

    def _ask(self, name: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            reply = self.workers[name].ask(request, self.timing.timeout_s)
        except PeerError as error:
            self._lose(name, str(error))
            return None
        if "error" in reply:
            self._lose(name, f"{name}: {reply['error']}")
            return None
        return reply

    def _lose(self, name: str, reason: str) -> None:
        self.workers.pop(name).close()
        self.lost[name] = reason
