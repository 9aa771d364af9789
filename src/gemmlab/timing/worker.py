"""`python -m gemmlab.timing.worker PARENT PLACE BYTES`: run contestants, usually one, in a separate process.

PARENT is the process id of the bench; the operands lie in the arena at PLACE, which has BYTES bytes. Requests and
replies are JSON lines on standard input and output. Anything that a library prints goes to standard error instead. The
worker ends when its input ends or its parent does.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from gemmlab.devices.device_name import parse_device
from gemmlab.ops.op_file import load_operation
from gemmlab.timing.arena import OperandPlace, map_place
from gemmlab.timing.contestants.contestant import Contestant, Prepared, UnsupportedError, Work
from gemmlab.timing.contestants.from_spec import make_contestant
from gemmlab.timing.families import family_of
from gemmlab.timing.process import forget_openmp_registration

_PR_SET_PDEATHSIG = 1


class Worker:
    """A server of requests about the contestants in this process, usually one."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._contestants: dict[str, Contestant] = {}
        self._cold = False
        self._prepared: dict[tuple[str, int], Prepared] = {}
        self._works: dict[int, Work] = {}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to one request. An `UnsupportedError` becomes `{"unsupported": ...}`, any other error
        `{"error": ...}`.
        """
        try:
            return self._answer(request)
        except UnsupportedError as error:
            return {"unsupported": str(error)}
        except Exception as error:  # noqa: BLE001 - the parent reports it under the contestant's name
            return {"error": f"{type(error).__name__}: {error}"}

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        command = request["command"]
        name = request.get("name", "")
        if command == "open":
            spec = request["spec"]
            if file := request.get("op_file"):
                load_operation(Path(file))
            # A device with separate memory flushes its own caches.
            self._cold = spec["mode"] == "cold" and family_of(parse_device(spec["device"]).family).host_threads
            self._contestants[name] = make_contestant(spec)
            return {"ok": True}
        if name not in self._contestants:
            raise ValueError(f"no contestant {name!r} is open")
        key = name, request["index"]
        if command == "prepare":
            prepared = self._contestants[name].prepare(self._work(request))
            prepared.run()
            forget_openmp_registration(os.getpid())
            self._prepared[key] = prepared
            gc.collect()
            gc.freeze()
            gc.disable()
            return {"facts": self._contestants[name].facts()}
        prepared = self._prepared[key]
        if command == "run":
            prepared.run()
            return {"ok": True}
        turn = prepared.turn(
            min_us=request["min_us"], warm_us=request["warm_us"], inner_us=request["inner_us"],
            raw_limit=request["raw_limit"],
        )  # fmt: skip
        return asdict(turn)

    def _work(self, request: Mapping[str, Any]) -> Work:
        """Return the `Work` of the request's problem: made once, then shared by all contestants of this process."""
        index = request["index"]
        if index not in self._works:
            self._works[index] = self._new_work(request)
        return self._works[index]

    def _new_work(self, request: Mapping[str, Any]) -> Work:
        placed = [OperandPlace.from_json(item) for item in request["operands"]]
        return Work(
            op=request["op"],
            problem=request["problem"],
            flops=request["flops"],
            scalars=request["scalars"],
            flat={item.operand.name: item.flat(self._memory) for item in placed},
            matrices={item.operand.name: item.matrix(self._memory) for item in placed},
            threads=request["threads"],
            cold=self._cold,
        )


def serve(worker: Worker, requests: TextIO, replies: TextIO) -> None:
    """Answer requests, one a line, until the input ends."""
    for line in requests:
        replies.write(json.dumps(worker.answer(json.loads(line))) + "\n")
        replies.flush()


def die_with_parent(parent: int) -> None:
    """Let Linux kill this process when process `parent` ends, even while this one is stopped.

    Exit at once if `parent` has already ended. On other systems do nothing: there the end of the input ends the worker.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def main() -> None:
    """Serve requests from standard input until it ends, then exit."""
    parent, place, nbytes = sys.argv[1:4]
    die_with_parent(int(parent))
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    memory = map_place(place, int(nbytes))
    try:
        serve(Worker(memory), sys.stdin, replies)
        replies.flush()
    finally:
        # Arrays still view the memory, and libraries' threads may be running: exit without shutting them down.
        os._exit(0)


if __name__ == "__main__":
    main()
