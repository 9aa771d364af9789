"""The bench with scripted workers: turns, losses, wrong answers, interruption."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.core.errors import PeerError, UsageError
from gemmlab.core.records import from_json, to_json
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.timing.arena import Arena
from gemmlab.timing.bench import run_bench
from gemmlab.timing.bench_plan import Plan, Progress
from gemmlab.timing.families import Timing
from gemmlab.timing.peers import Spec, parse_contestant
from gemmlab.timing.process import WorkerProcess
from gemmlab.timing.turns import start_worker

OP = GemmOp()
QUICK = Timing(min_us=20, warm_us=5, timeout_s=60)
SCRIPT = """
import json, os, sys, time
turns = 0
for line in sys.stdin:
    request = json.loads(line)
    command = request["command"]
    reply = {"ok": True}
    if command == "prepare":
        reply = {"facts": {"library": "scripted"}}
    if command == "turn":
        turns += 1
        reply = {"time_us": TIME, "calls": 1, "inner": 1, "raw_us": [TIME]}
    EXTRA
    print(json.dumps(reply), flush=True)
"""


class Launcher:
    """Starts scripted workers, and remembers every process."""

    def __init__(self, **extras: str) -> None:
        self.extras = extras
        self.pids: list[int] = []

    def __call__(self, spec: Spec, threads: int, arena: Arena) -> WorkerProcess:
        if spec.name == "numpy":
            worker = start_worker(spec, threads, arena)
        else:
            script = SCRIPT.replace("EXTRA", self.extras.get(spec.name, "")).replace("TIME", "2.0")
            worker = WorkerProcess(spec.name, [sys.executable, "-S", "-c", script], environment=os.environ)
        self.pids.append(worker.pid)
        return worker

    def none_left(self) -> bool:
        for pid in self.pids:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                continue
            return False
        return True


def _spec(name: str) -> Spec:
    return Spec(name, "gemmlab" if name == "ours" else "library")


def _plan(*names: str, sizes: str = "4,8", verify: bool = False, probe: bool = False) -> Plan:
    return Plan(OP, OP.parse_sizes(sizes), [_spec(name) for name in names], rounds=3, processes=2, timing=QUICK,
                verify=verify, probe=probe)  # fmt: skip


def test_every_turn_is_kept_and_none_is_left_running() -> None:
    launcher, seen = Launcher(), list[Progress]()
    record = run_bench(_plan("ours", "peer"), progress=seen.append, launcher=launcher, device={"id": "cpu"})
    for result in record.results:
        assert [(s.process, s.round) for s in result.samples] == [(p, r) for p in (0, 1) for r in (0, 1, 2)]
        assert result.facts["library"] == "scripted"
    assert {(r.contestant, r.label, r.facts["role"]) for r in record.results} == {
        (name, label, role)
        for name, role in (("ours", "library call"), ("peer", "peer"))
        for label in ("4x4x4", "8x8x8")
    }
    assert len(launcher.pids) == 4
    assert launcher.none_left()
    assert seen[-1].done == seen[-1].total == 2 * 2 * 3 * 2
    assert from_json(to_json(record)) == record
    assert record.method is not None
    assert (record.method.rounds, record.method.processes, record.method.interleaved) == (3, 2, True)


def test_after_the_budget_every_contestant_is_timed_once_at_each_size() -> None:
    record = run_bench(replace(_plan("ours", "peer"), budget_s=1e-9), launcher=Launcher())
    assert [(s.process, s.round) for result in record.results for s in result.samples] == [(0, 0)] * 4
    assert record.notes == ("the budget of 1e-09 s ended before 20 of 24 turns",)
    whole = run_bench(replace(_plan("ours", "peer"), budget_s=1000.0), launcher=Launcher())
    assert {len(result.samples) for result in whole.results} == {6}
    assert whole.notes == ()


@pytest.mark.in_turns(20)
def test_turns_are_shuffled_by_round_and_by_the_seed() -> None:
    def orders(seed: int) -> list[str]:
        seen = list[Progress]()
        plan = replace(_plan("a", "b", "c"), seed=seed, processes=1, rounds=8)
        run_bench(plan, progress=seen.append, launcher=Launcher())
        return [item.text for item in seen if "round" in item.text]

    first, again, other = orders(1), orders(1), orders(2)
    assert first == again != other
    places = Counter(text.split()[0] for text in first[::3])
    assert len(places) == 3


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("if turns == 2: sys.exit('out of luck')", "sick died with exit code 1; it said: out of luck"),
        ("if command == 'open': os.abort()", "sick died with SIGABRT"),
        ("if turns == 2: time.sleep(600)", "sick gave no answer within 1.5 s"),
        ("if turns == 2: reply = 5", "sick answered nonsense"),
        ("if command == 'prepare': reply = {'error': 'OSError: no such core'}", "sick: OSError: no such core"),
    ],
)
def test_a_sick_peer_is_left_behind_and_said_so(extra: str, said: str) -> None:
    launcher = Launcher(sick=extra)
    plan = replace(_plan("ours", "sick"), timing=replace(QUICK, timeout_s=1.5))
    record = run_bench(plan, launcher=launcher)
    assert len(record.notes) == 1
    assert said in record.notes[0]
    assert [len(r.samples) for r in record.results if r.contestant == "ours"] == [6, 6]
    assert launcher.none_left()


def test_contestants_of_one_host_share_a_process_and_its_end() -> None:
    together = [replace(_spec(name), host="same") for name in ("first", "second")]
    launcher = Launcher(first="if command == 'turn' and request['name'] == 'second': sys.exit('both gone')")
    plan = replace(_plan("alone"), contestants=[*together, _spec("alone")], processes=1, rounds=4)
    record = run_bench(plan, launcher=launcher)
    assert len(launcher.pids) == 2
    assert launcher.none_left()
    assert [len(r.samples) for r in record.results if r.contestant == "alone"] == [4, 4]
    assert len(record.notes) == 2
    assert all("second died" in note and "both gone" in note for note in record.notes)


def test_an_error_of_one_contestant_leaves_its_host_to_the_others() -> None:
    together = [replace(_spec(name), host="same") for name in ("first", "second")]
    sick = "if command == 'prepare' and request['name'] == 'first': reply = {'error': 'CompileError: no'}"
    record = run_bench(replace(_plan("x"), contestants=together), launcher=Launcher(first=sick))
    assert {(r.contestant, len(r.samples)) for r in record.results} == {("second", 6)}
    assert all("first: CompileError: no" in note for note in record.notes)


def test_long_calls_take_fewer_turns_and_no_warm_up() -> None:
    warm = "if command == 'turn': reply['raw_us'] = [request['warm_us']]"
    plan = replace(_plan("slow"), rounds=12, timing=replace(QUICK, long_us=2.0, cell_us=9.0))
    for result in run_bench(plan, launcher=Launcher(slow=warm)).results:
        # Of 12 rounds a cell of 9 us has room for 4 calls of 2 us, beside the first, of which nothing was known.
        first, second = ([s.round for s in result.samples if s.process == process] for process in (0, 1))
        assert first == [0, 2, 5, 8, 11]
        assert second == [2, 5, 8, 11]
        assert [sample.raw_us for sample in result.samples] == [(5.0,)] + [(0.0,)] * 8


def test_nothing_left_to_time_is_an_error() -> None:
    launcher = Launcher(sick="os.abort()")
    with pytest.raises(PeerError, match="nothing could be timed: sick died with SIGABRT"):
        run_bench(_plan("sick"), launcher=launcher)
    assert launcher.none_left()


def test_what_a_contestant_cannot_do_is_noted() -> None:
    extra = "if command == 'prepare' and request['index'] == 1: reply = {'unsupported': 'too large'}"
    record = run_bench(_plan("ours", "small"), launcher=Launcher(small=extra))
    refused = next(r for r in record.results if (r.contestant, r.label) == ("small", "8x8x8"))
    assert (refused.samples, refused.notes) == ((), ("too large",))


def test_a_plan_may_leave_sizes_out() -> None:
    plan = replace(_plan("ours", "slow"), only=lambda name, problem: name != "slow" or problem.m < 8)
    seen = list[Progress]()
    record = run_bench(plan, launcher=Launcher(), progress=seen.append)
    assert [r.label for r in record.results if r.contestant == "slow" and r.samples] == ["4x4x4"]
    assert seen[-1].done == seen[-1].total == 3 * 3 * 2


@pytest.mark.in_turns(20)
def test_a_wrong_answer_is_marked_and_a_right_one_is_not() -> None:
    plan = replace(_plan("liar", verify=True), contestants=[_spec("liar"), parse_contestant("numpy")], processes=1)
    results = {(r.contestant, r.label): r for r in run_bench(plan, launcher=Launcher()).results}
    for label in ("4x4x4", "8x8x8"):
        assert results["numpy", label].verified is True
        assert 0 <= (results["numpy", label].max_error_ratio or 0) <= 1
        wrong = results["liar", label]
        assert (wrong.verified, wrong.max_error_ratio) == (False, math.inf)
        assert "c[0, 0] = nan" in wrong.notes[0]
        assert len(wrong.samples) == 3


@pytest.mark.in_turns(20)
def test_numpy_with_beta_is_unsupported_not_wrong() -> None:
    plan = Plan(OP, [GemmProblem(4, 4, 4, beta=1.0)], [parse_contestant("numpy"), _spec("ours")], rounds=1, processes=1,
                timing=QUICK, probe=False, verify=False)  # fmt: skip
    record = run_bench(plan, launcher=Launcher())
    assert record.results[0].notes == ("numpy.matmul has no alpha and beta",)


def _open_arenas() -> list[str]:
    """The arenas that this process has open. Names in /dev/shm say nothing: other processes make and remove theirs."""
    links = (str(each.readlink()) for each in Path("/proc/self/fd").glob("*") if each.is_symlink())
    return [link for link in links if link.startswith("/memfd:gemmlab")]


def test_an_interruption_leaves_nothing() -> None:
    launcher = Launcher()

    def interrupt(progress: Progress) -> None:
        if progress.done == 3:
            assert _open_arenas() or not hasattr(os, "memfd_create")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_bench(_plan("ours", "peer"), progress=interrupt, launcher=launcher)
    assert launcher.none_left()
    assert not _open_arenas()


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: replace(plan, rounds=0),
        lambda plan: replace(plan, processes=0),
        lambda plan: replace(plan, problems=[]),
        lambda plan: replace(plan, contestants=[]),
        lambda plan: replace(plan, threads=()),
        lambda plan: replace(plan, threads=(10**6,)),
        lambda plan: replace(plan, contestants=[_spec("a"), _spec("a")]),
    ],
)
def test_plans_that_make_no_sense(change: Callable[[Plan], Plan]) -> None:
    plan = _plan("a")
    with pytest.raises(UsageError):
        change(plan)
