"""Worker processes that die, hang, chatter or lie are named, and none outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gemmlab.core.errors import PeerError
from gemmlab.ops.gemm import GemmOp
from gemmlab.timing.arena import Arena
from gemmlab.timing.peers import parse_contestant
from gemmlab.timing.process import WorkerProcess, importable_here

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads process states from /proc")


def _start(script: str) -> WorkerProcess:
    return WorkerProcess("the peer", [sys.executable, "-c", script], environment=os.environ)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "gone"


def test_requests_are_answered_again_and_again() -> None:
    with _start(ECHO) as worker:
        assert [worker.ask({"n": n}, 20)["n"] for n in range(20)] == list(range(20))


@needs_proc
def test_it_is_stopped_between_turns_and_gone_at_the_end() -> None:
    with _start(ECHO) as worker:
        for _ in range(3):
            worker.ask({}, 20)
            assert _state(worker.pid) == "T"
    assert _state(worker.pid) == "gone"


def test_death_is_told_with_the_last_words() -> None:
    script = "import sys; input(); sys.stderr.write('segfault in libfoo'); sys.exit(7)"
    with (
        _start(script) as worker,
        pytest.raises(PeerError, match=r"the peer died with exit code 7.*segfault in libfoo"),
    ):
        worker.ask({}, 20)


def test_death_by_signal_is_told() -> None:
    script = "import os; input(); os.abort()"
    with _start(script) as worker, pytest.raises(PeerError, match="SIGABRT"):
        worker.ask({}, 20)


def test_death_between_turns_is_told() -> None:
    with _start(ECHO) as worker:
        worker.ask({}, 20)
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(PeerError, match="the peer died with SIGKILL"):
            worker.ask({}, 20)


def test_a_hanging_worker_is_given_up_and_killed() -> None:
    with _start("import time\ninput()\ntime.sleep(600)") as worker:
        started = time.monotonic()
        with pytest.raises(PeerError, match=r"the peer gave no answer within 0\.3 s"):
            worker.ask({}, 0.3)
        assert time.monotonic() - started < 10
        with pytest.raises(ProcessLookupError):
            os.kill(worker.pid, 0)


def test_half_a_line_is_no_answer() -> None:
    with _start("import sys,time\ninput()\nprint('{', end='', flush=True)\ntime.sleep(600)") as worker:  # noqa: SIM117
        with pytest.raises(PeerError, match="no answer"):
            worker.ask({}, 0.3)


@pytest.mark.parametrize("said", ["hello", "[1]", "\\xff"])
def test_nonsense_is_refused(said: str) -> None:
    script = f"import sys; input(); sys.stdout.buffer.write(b'{said}\\n'); sys.stdout.flush(); input()"
    with _start(script) as worker, pytest.raises(PeerError, match="answered nonsense"):
        worker.ask({}, 20)


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(PeerError, match="the peer could not be started"):
        WorkerProcess("the peer", ["/nonexistent/python"], environment={})


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
def test_it_is_pinned_and_we_are_not() -> None:
    before = os.sched_getaffinity(0)
    script = "import os\ninput()\nprint('{\"cpus\": %s}' % sorted(os.sched_getaffinity(0)), flush=True)\ninput()"
    with WorkerProcess("p", [sys.executable, "-c", script], environment=os.environ, cpus=[max(before)]) as worker:
        assert worker.ask({}, 20)["cpus"] == [max(before)]
    assert os.sched_getaffinity(0) == before


LOUD = """
import os
from gemmlab.timing import worker
from gemmlab.timing.contestants.contestant import Calls

class Loud:
    def prepare(self, work):
        os.system("echo from a child")
        return Calls.of(lambda: os.write(1, b"straight to the descriptor "))
    def facts(self):
        print("through Python")
        return {"library": "loud"}

worker.make_contestant = lambda spec: Loud()
worker.main()
"""


def test_what_a_library_prints_does_not_reach_the_protocol() -> None:
    op = GemmOp()
    with Arena(op, op.parse_sizes("8"), seed=0) as arena:
        command = [sys.executable, "-c", LOUD, str(os.getpid()), arena.place, str(arena.nbytes)]
        environment = {**os.environ, "PYTHONPATH": importable_here()}
        with WorkerProcess("loud", command, environment=environment, descriptors=arena.descriptors) as worker:
            assert worker.ask({"command": "open", "spec": {"mode": "warm"}}, 60) == {"ok": True}
            scalars = {"alpha": 1.0, "beta": 0.0}
            request = {
                "command": "prepare", "index": 0, "op": "gemm", "problem": {}, "flops": 1024, "scalars": scalars,
                "operands": [placed.to_json() for placed in arena.placed[0].values()], "threads": 1,
            }  # fmt: skip
            assert worker.ask(request, 60) == {"facts": {"library": "loud"}}
            timing = {"command": "turn", "index": 0, "min_us": 100, "warm_us": 10, "inner_us": 5, "raw_limit": 4}
            turn = worker.ask(timing, 60)
            assert turn["time_us"] > 0
            assert 1 <= len(turn["raw_us"]) <= 4
            assert worker.ask({"command": "turn", "index": 9}, 60) == {"error": "KeyError: ('', 9)"}


ORPHAN = """
import sys, time
from gemmlab.timing.arena import Arena
from gemmlab.timing.peers import parse_contestant
from gemmlab.timing.turns import start_worker
from gemmlab.ops.gemm import GemmOp
op = GemmOp()
with Arena(op, op.parse_sizes("8"), seed=0) as arena:
    with start_worker(parse_contestant("numpy"), 1, arena) as worker:
        worker.ask({"command": "open", "spec": parse_contestant("numpy").to_json()}, 60)
        print(worker.pid, flush=True)
        time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends workers of a killed parent on Linux only")
def test_a_stopped_worker_dies_with_a_parent_that_is_killed() -> None:
    environment = {**os.environ, "PYTHONPATH": importable_here()}
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert _state(pid) == "T"
        parent.kill()
    deadline = time.monotonic() + 20
    while _state(pid) not in ("gone", "Z") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert _state(pid) in ("gone", "Z")


def test_the_spec_a_worker_gets_is_json() -> None:
    assert parse_contestant("numpy:Haswell").to_json()["core_type"] == "Haswell"
