"""The workers of all contestants on one arena: start and prepare them, time turns, and drop those that fail.

A turn times one contestant at one problem: a warm-up, then timed calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np

from gemmlab.core.errors import PeerError
from gemmlab.ops.op import Op
from gemmlab.timing.arena import Arena
from gemmlab.timing.families import Timing, family_of
from gemmlab.timing.peers import Spec
from gemmlab.timing.process import WorkerProcess, importable_here, worker_command
from gemmlab.timing.worker_setup import worker_cpus, worker_environment

Launcher = Callable[[Spec, int, Arena], WorkerProcess]
"""(contestant, threads, arena) -> a running worker."""


def start_worker(spec: Spec, threads: int, arena: Arena) -> WorkerProcess:
    """Start a worker of this installation with `worker_environment`, pinned to CPUs if its threads compute."""
    environment = worker_environment(spec, threads, os.environ)
    environment["PYTHONPATH"] = importable_here()
    return WorkerProcess(
        spec.name, worker_command(arena.place, arena.nbytes), environment=environment,
        cpus=worker_cpus(threads) if family_of(spec.device.family).host_threads else (), descriptors=arena.descriptors,
    )  # fmt: skip


@dataclass
class Crew:
    """The workers of contestants, one or several contestants in each. Contestants are named, problems are indices.

    `lost` maps a contestant to the reason why it failed; `skipped` maps (contestant, problem) to the reason why it is
    not timed there; `facts` has what a contestant said about itself at its latest `prepare`. A context manager that
    kills every worker at its end, also after an error.
    """

    op: Op
    problems: Sequence[Any]
    arena: Arena
    threads: int
    timing: Timing
    launcher: Launcher = start_worker
    workers: dict[str, WorkerProcess] = field(default_factory=dict)
    """`Spec.process` -> worker."""
    hosts: dict[str, str] = field(default_factory=dict)
    """Contestant -> `Spec.process` of its worker."""
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
        """Start a contestant; return False, with an entry in `lost`, if it does not start."""
        self.join_all([spec])
        return self.alive(spec.name)

    def join_all(self, specs: Sequence[Spec]) -> None:
        """Start contestants, their processes all at once; those that do not start get an entry in `lost`."""
        first: list[Spec] = []
        for spec in specs:
            self.hosts[spec.name] = spec.process
            if spec.process in self.workers or spec.process in [other.process for other in first]:
                continue
            try:
                self.workers[spec.process] = worker = self.launcher(spec, self.threads, self.arena)
                worker.send(self._opening(spec))
                first.append(spec)
            except PeerError as error:
                self._lose_host(spec.process, str(error))
        for spec in first:
            self._reply(spec.name)
        for spec in specs:
            if spec not in first and spec.name not in self.lost:
                self._ask(spec.name, self._opening(spec))

    def alive(self, name: str) -> bool:
        """Return whether the contestant has joined and is not lost."""
        return name not in self.lost and self.hosts.get(name) in self.workers

    def prepare(self, name: str, index: int) -> bool:
        """Let a contestant set up problem `index` and run it once; update its `facts`.

        Return False, with an entry in `skipped` or `lost`, if it cannot.
        """
        problem = self.problems[index]
        request = {
            "command": "prepare",
            "index": index,
            "op": self.op.name,
            "problem": problem.to_json(),
            "flops": self.op.flops(problem),
            "scalars": {
                key: value.item() for key, value in self.op.scalars(problem).items() if isinstance(value, np.number)
            },
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
        """Return whether the contestant is alive and has no entry in `skipped` for problem `index`."""
        return self.alive(name) and (name, index) not in self.skipped

    def run(self, name: str, index: int) -> bool:
        """Let a contestant execute problem `index` once, untimed; return False if the contestant is lost."""
        return self._ask(name, {"command": "run", "index": index}) is not None

    def turn(self, name: str, index: int, last_us: float = 0.0) -> dict[str, Any] | None:
        """Let a contestant take one turn; return the fields of `contestant.Turn`, or `None` if the contestant is lost.

        `last_us` is the time of a call in the turn before, 0 if unknown: long calls need no warm-up.
        """
        timing = self.timing
        request = {
            "command": "turn", "index": index, "min_us": timing.min_us,
            "warm_us": timing.warm_us if last_us < timing.long_us else 0.0,
            "inner_us": timing.inner_us, "raw_limit": timing.raw_limit,
        }  # fmt: skip
        return self._ask(name, request)

    def _opening(self, spec: Spec) -> dict[str, Any]:
        return {"command": "open", "name": spec.name, "spec": spec.to_json(), "op_file": self.op.file or ""}

    def _ask(self, name: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
        worker = self.workers[self.hosts[name]]
        worker.name = name  # an error is that of the contestant that was asked, not of the worker's first one
        try:
            worker.send({**request, "name": name})
        except PeerError as error:
            self._lose_host(self.hosts[name], str(error))
            return None
        return self._reply(name)

    def _reply(self, name: str) -> dict[str, Any] | None:
        host = self.hosts[name]
        try:
            reply = self.workers[host].receive(self.timing.timeout_s)
        except PeerError as error:
            self._lose_host(host, str(error))
            return None
        if "error" in reply:
            self.lost[name] = f"{name}: {reply['error']}"
            if not any(self.alive(other) for other, where in self.hosts.items() if where == host):
                self.workers.pop(host).close()
            return None
        return reply

    def _lose_host(self, host: str, reason: str) -> None:
        """Close a failed process and mark all its contestants as lost."""
        worker = self.workers.pop(host, None)
        if worker is not None:
            worker.close()
        for name, where in self.hosts.items():
            if where == host:
                self.lost.setdefault(name, reason)
