"""What a worker does with a contestant: how calls are batched, and what each one is called with."""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.precision import BF16X6, BY_TILE, FLOAT32
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.timing.arena import Arena
from gemmlab.timing.contestants.contestant import Calls, UnsupportedError, Work, time_calls
from gemmlab.timing.contestants.cpu_library import LibraryCall, NumpyCall
from gemmlab.timing.contestants.from_spec import make_contestant
from gemmlab.timing.contestants.on_device import KernelCall, OnDevice, PeakTurn
from gemmlab.timing.worker import Worker
from support.fake_device import FakeDevice, make_kernel, right

OP = GemmOp()
TIMING: dict[str, Any] = {"min_us": 3000.0, "warm_us": 1000.0, "inner_us": 20.0, "raw_limit": 16}


@pytest.fixture
def standing(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """The clock that a turn reads, which stands still unless `now_ns` is moved."""
    clock = types.SimpleNamespace(now_ns=0)
    clock.perf_counter_ns = lambda: clock.now_ns
    monkeypatch.setattr("gemmlab.timing.contestants.contestant.time", clock)
    return clock


class Clock:
    """A timer for which every call takes `call_us`, the first one `first_us`."""

    def __init__(self, call_us: float, first_us: float | None = None) -> None:
        self.call_us, self.first_us = call_us, first_us if first_us is not None else call_us
        self.calls = 0

    def __call__(self, calls: int, inner: int) -> list[float]:
        times = [self.first_us if self.calls == 0 and index == 0 else self.call_us for index in range(calls)]
        self.calls += calls * inner
        return times


@pytest.mark.parametrize(
    ("call_us", "calls", "inner"), [(0.5, 150, 40), (3.0, 143, 7), (20.0, 150, 1), (2000.0, 2, 1), (5e6, 1, 1)]
)
@pytest.mark.usefixtures("standing")
def test_turns_last_their_time_and_short_calls_go_in_batches(call_us: float, calls: int, inner: int) -> None:
    clock = Clock(call_us)
    turn = Calls(lambda: None, clock).turn(**TIMING)
    assert (turn.calls, turn.inner, turn.time_us) == (calls, inner, call_us)
    assert 1 <= len(turn.raw_us) <= 16
    warm_up = clock.calls - calls * inner
    assert warm_up >= 1
    assert warm_up * call_us >= 1000 or warm_up == 1


@pytest.mark.usefixtures("standing")
def test_a_cold_first_call_does_not_shorten_the_turn() -> None:
    turn = Calls(lambda: None, Clock(100.0, first_us=900.0)).turn(**TIMING)
    assert turn.calls == 30


@pytest.mark.usefixtures("standing")
def test_a_call_as_long_as_the_turn_needs_no_warm_up() -> None:
    clock = Clock(5000.0)
    turn = Calls(lambda: None, clock).turn(**{**TIMING, "warm_us": 0.0})
    assert (clock.calls, turn.calls, turn.time_us, turn.raw_us) == (1, 1, 5000.0, [5000.0])
    clock = Clock(1000.0)
    assert Calls(lambda: None, clock).turn(**{**TIMING, "warm_us": 0.0}).calls == 3


def test_what_a_timer_does_beside_the_calls_shortens_the_turn(standing: types.SimpleNamespace) -> None:
    def timer(calls: int, _inner: int) -> list[float]:
        standing.now_ns += calls * 200_000
        return [20.0] * calls

    turn = Calls(lambda: None, timer).turn(**TIMING)
    # 3 ms of calls of 20 us would be 150 of them; each takes 0.2 ms in all, and so did the 8 of the warm-up.
    assert turn.calls == 15
    assert standing.now_ns == (8 + 15) * 200_000


def test_times_are_of_one_call() -> None:
    seen = []
    times = time_calls(lambda: seen.append(1), 5, 4)
    assert (len(times), len(seen)) == (5, 20)
    assert all(0 <= time < 1e6 for time in times)


def test_the_probe_becomes_the_time_at_peak() -> None:
    asked = []

    def measure(threads: int, seconds: float) -> float:
        asked.append((threads, seconds))
        return 200.0

    device: Any = types.SimpleNamespace()
    turn = PeakTurn(device, measure, 2, 2 * 100**3).turn(**TIMING)
    assert turn.time_us == pytest.approx(10.0)
    assert asked == [(2, 0.003)]


def _work(problem: GemmProblem, arena: Arena) -> Work:
    placed = arena.placed[0]
    return Work(
        op="gemm", problem=problem.to_json(), flops=OP.flops(problem),
        scalars={name: value.item() for name, value in OP.scalars(problem).items()},
        flat={name: item.flat(arena.memory) for name, item in placed.items()},
        matrices={name: item.matrix(arena.memory) for name, item in placed.items()}, threads=2,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        (GemmProblem(3, 4, 5), {}),
        (GemmProblem(3, 4, 5, trans_a=True, trans_b=True), {"trans_a": True, "trans_b": True}),
        (GemmProblem(3, 4, 5, alpha=2.0), {"alpha": 2.0, "beta": 0.0}),
        (GemmProblem(3, 4, 5, beta=0.5), {"alpha": 1.0, "beta": 0.5, "c": "c"}),
    ],
)
def test_the_library_is_called_as_a_user_would(
    problem: GemmProblem, options: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    monkeypatch.setattr(gemmlab, "gemm", lambda *given, **named: seen.append((given, named)), raising=False)
    with Arena(OP, [problem], seed=0) as arena:
        work = _work(problem, arena)
        LibraryCall().prepare(work).run()
        given, named = seen[0]
        out = named.pop("out")
        for array, name in ((given[0], "a"), (given[1], "b"), (out, "c")):
            assert array.__array_interface__ == work.matrices[name].__array_interface__
        assert named.pop("threads") == 2
        assert {name: "c" if value is out else value for name, value in named.items()} == options


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_numpy_reads_every_layout_with_gaps_between_rows(layout: str) -> None:
    problem = GemmProblem(3, 4, 5, lda=7, ldb=8, ldc=9, trans_a=layout[0] == "t", trans_b=layout[1] == "t")
    with Arena(OP, [problem], seed=3) as arena:
        NumpyCall().prepare(_work(problem, arena)).run()
        expected = OP.reference(problem, arena.fill(0))["c"]
        result = arena.placed[0]["c"].matrix(arena.memory)
        assert np.all(np.abs(result - expected.values) <= expected.bound)


def test_numpy_refuses_what_matmul_has_not() -> None:
    problem = GemmProblem(3, 4, 5, alpha=2.0)
    with Arena(OP, [problem], seed=3) as arena, pytest.raises(UnsupportedError, match="alpha"):
        NumpyCall().prepare(_work(problem, arena))


def test_the_arena_holds_every_problem_apart_and_restores_outputs() -> None:
    problems = [GemmProblem(3, 4, 5, beta=1.0, ldc=6), GemmProblem(0, 4, 5), GemmProblem(16, 16, 16)]
    with Arena(OP, problems, seed=1) as arena:
        spans = sorted((p.offset, p.offset + 4 * p.words) for placed in arena.placed for p in placed.values())
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
        assert all(p.offset % 64 == 0 for placed in arena.placed for p in placed.values())
        assert spans[-1][1] <= arena.nbytes
        first, c = arena.fill(0), arena.placed[0]["c"].matrix(arena.memory)
        assert np.array_equal(c, first["c"])
        c[...] = 0
        arena.placed[0]["a"].matrix(arena.memory)[...] = 7
        arena.restore(0, first)
        assert np.array_equal(c, first["c"])
        assert np.all(arena.placed[0]["a"].matrix(arena.memory) == 7)
        assert np.isnan(arena.placed[2]["c"].matrix(arena.memory)).all()


def test_data_is_random_and_the_same_every_time() -> None:
    problem = GemmProblem(8, 8, 8)
    with (
        Arena(OP, [problem], seed=1) as one,
        Arena(OP, [problem], seed=1) as two,
        Arena(OP, [problem], seed=2) as other,
    ):
        values = [arena.placed[0]["a"].matrix(arena.memory).copy() for arena in (one, two, other)]
    assert np.array_equal(values[0], values[1])
    assert not np.array_equal(values[0], values[2])
    assert np.unique(values[0]).size > 32


def test_no_memory_is_an_error_not_a_crash() -> None:
    huge = GemmProblem(2**20, 2**20, 2**20)
    with pytest.raises(MemoryError, match=r"size 1048576x1048576x1048576.* needs at least 12288.0 GiB; "):
        Arena(OP, [huge], seed=0)


def test_a_worker_without_a_contestant_answers_with_an_error() -> None:
    with Arena(OP, [GemmProblem(2, 2, 2)], seed=0) as arena:
        assert Worker(arena.memory).answer({"command": "run", "index": 0}) == {
            "error": "ValueError: no contestant '' is open"
        }


def test_contestants_by_kind() -> None:
    assert isinstance(make_contestant({"kind": "gemmlab"}), LibraryCall)
    assert isinstance(make_contestant({"kind": "numpy"}), NumpyCall)


@pytest.fixture
def fake_cpu(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    device = FakeDevice()
    kernels = {
        name: make_kernel(name, device, right, threaded=threaded)
        for name, threaded in (("single", False), ("several", True))
    }
    module = types.ModuleType("gemmlab.devices.cpu")
    vars(module)["CpuDevice"] = lambda: device
    monkeypatch.setitem(sys.modules, "gemmlab.devices.cpu", module)
    monkeypatch.setattr("gemmlab.kernels.by_name.find_kernel", kernels.__getitem__)
    return device


@pytest.mark.usefixtures("fake_cpu")
def test_a_kernel_is_timed_by_its_device_and_says_what_code_it_is() -> None:
    problem = GemmProblem(5, 4, 3, ldc=6, beta=0.5)
    with Arena(OP, [problem], seed=1) as arena:
        contestant = KernelCall("several", {})
        prepared = contestant.prepare(_work(problem, arena))
        prepared.run()
        expected = OP.reference(problem, arena.fill(0))["c"]
        result = arena.placed[0]["c"].matrix(arena.memory)
        assert np.all(np.abs(result - expected.values) <= expected.bound)
        turn = prepared.turn(min_us=50.0, warm_us=5.0, inner_us=4.0, raw_limit=8)
        assert (turn.time_us, turn.inner, turn.calls) == (1.0, 4, 13)
        facts = contestant.facts()
        assert facts["config"] == {"TILE": 4}
        assert facts["compiler"] == "none"


@pytest.mark.parametrize("refusal", ["", "needs AMX"])
def test_the_library_names_the_precision_in_which_the_processor_computes(
    refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemmlab.dispatch.cpu_precision.tiles_refusal", lambda: refusal)
    for size, tiles in ((2, FLOAT32), (512, FLOAT32 if refusal else BF16X6)):
        problem = GemmProblem(size, size, size)
        with Arena(OP, [problem], seed=1) as arena:
            work = _work(problem, arena)
            for precision, same, used in ((FLOAT32, False, FLOAT32), (BY_TILE, False, tiles), (BY_TILE, True, FLOAT32)):
                call = LibraryCall(precision, reproducible=same)
                call.prepare(work)
                assert call.facts()["precision"] == used


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_a_packed_operand_gives_the_result_of_the_plain_call(trans_b: bool, beta: float) -> None:
    problem = GemmProblem(5, 40, 30, trans_b=trans_b, beta=beta)
    with Arena(OP, [problem], seed=1) as arena:
        results = []
        for packed in (False, True):
            arena.restore(0, None)
            LibraryCall(packed=packed).prepare(_work(problem, arena)).run()
            results.append(arena.placed[0]["c"].matrix(arena.memory).copy())
        np.testing.assert_array_equal(results[0], results[1])
        expected = OP.reference(problem, arena.fill(0))["c"]
        assert np.all(np.abs(results[1] - expected.values) <= expected.bound)


@pytest.mark.usefixtures("fake_cpu")
def test_contestants_of_one_process_share_operands_and_each_finds_the_newest_output() -> None:
    problem = GemmProblem(5, 4, 3)
    with Arena(OP, [problem], seed=1) as arena:
        work = _work(problem, arena)
        first, second = (KernelCall("several", {"TILE": tile}).prepare(work) for tile in (1, 2))
        first.run()
        inputs = {name: work.uploaded[name] for name in "ab"}
        second.run()
        assert all(work.uploaded[name] is buffer for name, buffer in inputs.items())
        assert isinstance(first, OnDevice)
        assert isinstance(second, OnDevice)
        assert first.device is second.device
        first.turn(**TIMING)
        assert first.attached_to["c"] is second.attached_to["c"] is work.uploaded["c"]


@pytest.mark.usefixtures("fake_cpu")
def test_a_kernel_refuses_layouts_and_threads_it_has_not() -> None:
    with Arena(OP, [GemmProblem(5, 4, 3, trans_a=True)], seed=1) as arena:
        work = _work(GemmProblem(5, 4, 3, trans_a=True), arena)
        with pytest.raises(UnsupportedError, match=r"single does not take .*: layout nn .*not read layout tn"):
            KernelCall("single", {}).prepare(work)
    problem = GemmProblem(5, 4, 3)
    with Arena(OP, [problem], seed=1) as arena, pytest.raises(UnsupportedError, match="single runs on one thread"):
        KernelCall("single", {}).prepare(_work(problem, arena))
