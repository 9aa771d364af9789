"""Nsight Compute's figures: how ncu is called, what is read of its pages, what becomes of both."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import PeerError, ProfilerError, TimeLimitError, UsageError
from gemmlab.core.time_limit import time_limit
from gemmlab.observe import ncu_target
from gemmlab.observe.ncu import _METRICS, disagreements, group, profile
from gemmlab.observe.ncu_program import version
from gemmlab.observe.ncu_report import Instructions, _total, from_csv, totals_from_csv
from gemmlab.observe.profile import Profile
from gemmlab.ops.gemm import GemmOp
from gemmlab.timing.contestants.contestant import Work
from gemmlab.timing.peers import Spec
from support.fake_ncu import REFUSED, put_ncu
from support.paths import DATA

SPECS = [Spec("kernel:one", "kernel"), Spec("cublas", "cublas"), Spec("kernel:two", "kernel")]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts an `ncu` on the PATH; what it does when it profiles can be added."""

    return partial(put_ncu, tmp_path, monkeypatch)


def test_every_contestant_has_its_launches(fake: Any) -> None:
    fake()
    assert version("ncu") == "Version 2025.3.1.0"
    found = profile(SPECS, "gemm", GemmOp().parse_sizes("8,16"))
    assert [(item.contestant, item.size, item.kernels) for item in found] == [
        ("kernel:one", "8x8x8", ("kernel:one",)), ("kernel:one", "16x16x16", ("kernel:one",)),
        ("kernel:two", "8x8x8", ("kernel:two",)), ("kernel:two", "16x16x16", ("kernel:two",)),
        ("cublas", "8x8x8", ("main", "reduce")), ("cublas", "16x16x16", ("main", "reduce")),
    ]  # fmt: skip
    one, library = found[0], found[-1]
    assert (one.counts["inst_executed"], one.counts["memory_l1_wavefronts_shared"]) == (1300, 640)
    assert library.counts["inst_executed"] == 2600
    assert one.metrics == {"gpu__time_duration.sum": 1000, "smsp__inst_executed.sum": 1300}
    assert library.metrics["gpu__time_duration.sum"] == 1001
    assert one.facts == {"config": {"BM": 32}, "role": "rung", "precision": "float32"}
    assert one.opcodes == {"MOV": 1000, "LDS": 300}


def test_a_metric_that_this_ncu_does_not_know_is_done_without(fake: Any) -> None:
    fake("if any('dram__bytes_read.sum' in a for a in arguments): sys.exit('Failed to find metric dram__bytes')")
    assert len(profile(SPECS[:1], "gemm", GemmOp().parse_sizes("8"))) == 1
    fake("sys.exit('no permission')")
    with pytest.raises(PeerError, match="ncu failed: no permission"):
        profile(SPECS[:1], "gemm", GemmOp().parse_sizes("8"))


@pytest.mark.parametrize("ending", ["", "==ERROR== ERR_NVGPUCTRPERM"])
def test_where_ncu_may_not_count_it_is_said_what_to_do(fake: Any, ending: str) -> None:
    # Refused, it ends with an error of its own or as the program that it ran.
    fake(REFUSED if not ending else f"print('{ending}')")
    with pytest.raises(ProfilerError, match="NVreg_RestrictProfilingToAdminUsers=0"):
        profile(SPECS[:1], "gemm", GemmOp().parse_sizes("8"))


def test_an_ncu_that_runs_nothing_or_cannot_be_run(fake: Any, tmp_path: Path) -> None:
    fake("sys.exit(0)")
    with pytest.raises(PeerError, match="did not run -m gemmlab"):
        profile(SPECS[:1], "gemm", GemmOp().parse_sizes("8"))
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    with pytest.raises(ProfilerError, match="could not be started"):
        profile(SPECS[:1], "gemm", GemmOp().parse_sizes("8"), ncu=str(broken))
    broken.write_text("#!/bin/sh\n")
    with pytest.raises(ProfilerError, match="prints no version"):
        version(str(broken))


def test_a_time_limit_ends_every_run_of_ncu(fake: Any) -> None:
    fake("import time; time.sleep(20)")
    started = time.monotonic()
    with time_limit(0.5), pytest.raises(TimeLimitError, match=r"ncu: stopped at the time limit of 0\.5 s"):
        profile(SPECS, "gemm", GemmOp().parse_sizes("8,16"))
    assert time.monotonic() - started < 15


def test_a_library_may_round_as_it_was_told(fake: Any) -> None:
    fake("import os; sys.exit('override ' + os.environ.get('NVIDIA_TF32_OVERRIDE', 'none'))")
    for precision, told in (("float32", "override 0"), ("tf32", "override none")):
        with pytest.raises(PeerError, match=told):
            profile([Spec("cublas", "cublas", precision=precision)], "gemm", GemmOp().parse_sizes("8"))


def test_without_ncu_that_is_said() -> None:
    with pytest.raises(ProfilerError, match="not on the PATH"):
        profile(SPECS[:1], "gemm", GemmOp().parse_sizes("8"), ncu="no-such-profiler")


def test_launches_that_do_not_add_up_are_refused() -> None:
    launches = [Instructions("a", []), Instructions("b", [])]
    item = {"contestant": "x", "size": "8", "facts": {}, "launches": 1}
    for done in ([item], [item] * 3, [{**item, "launches": None}, item]):
        with pytest.raises(UsageError, match="2 profiled"):
            group(done, launches)
    assert [found.kernels for found in group([item, item], launches)] == [("a",), ("b",)]
    refused = {**item, "launches": 0, "why": "it takes squares only"}
    (nothing, _, _) = group([refused, item, item], launches)
    assert (nothing.kernels, nothing.notes, nothing.metrics) == ((), ("it takes squares only",), {})
    with pytest.raises(UsageError, match="1 launches were made and 0 profiled"):
        group([item], [])


def test_pages_as_ncu_prints_them() -> None:
    """Written after the format of ncu 2025; figures are made up, names and punctuation are not."""
    first, second = totals_from_csv((DATA / "ncu_raw.csv").read_text(), _METRICS)
    assert first["gpu__time_duration.sum"] == 12345
    assert first["smsp__inst_executed.sum"] == 2080
    assert first["smsp__pcsamp_warps_issue_stalled_long_scoreboard"] == 30
    assert first["smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued"] == 21
    assert not {"device__attribute_clock_rate", "lts__t_sector_hit_rate.pct"} & set(first)
    assert second["lts__t_sector_hit_rate.pct"] == 87.5
    one, two = from_csv((DATA / "ncu_source.csv").read_text())
    assert (one.name, two.name) == ('product(int, float const*, "quoted")', "second")
    assert dict(one.opcodes()) == {"FFMA": 1024, "LDG": 1024, "EXIT": 32}
    address, text, counts = one.rows[1]
    assert (address, text) == (16, "@!P0 LDG.E.128 R4, [R2.64]")
    assert counts == {
        "inst_executed": 1024, "thread_inst_executed": 32768, "thread_inst_executed_true": 16384,
        "memory_l1_wavefronts_shared": 0, "memory_l2_theoretical_sectors_global": 4096,
    }  # fmt: skip
    assert dict(two.opcodes()) == {}


def test_samples_are_kept_by_instruction_and_added_up() -> None:
    class Metric:
        def __init__(self, name: str, values: list[float]) -> None:
            self._name, self._values = name, values

        def name(self) -> str:
            return self._name

        def num_instances(self) -> int:
            return len(self._values) - 1

        def as_double(self, index: int = -1) -> float:
            return self._values[index]

    assert _total(Metric("smsp__pcsamp_warps_issue_stalled_wait", [3.0, 4.0, 0.0])) == 7
    assert _total(Metric("smsp__pcsamp_warps_issue_stalled_wait", [5.0])) == 5
    assert _total(Metric("smsp__inst_executed.sum", [3.0, 4.0, 9.0])) == 9


def test_a_page_without_a_table_is_refused() -> None:
    with pytest.raises(UsageError, match="no table"):
        totals_from_csv("==WARNING== No kernels were profiled.\n", [".*"])


def test_only_what_is_exact_can_disagree() -> None:
    counts = {"inst_executed": 10.0, "memory_l1_wavefronts_shared": 4.0}
    metrics = {"smsp__inst_executed.sum": 11.0, "lts__t_sector_hit_rate.pct": 50.0}
    emulated = {"inst_executed": 10.0, "memory_l1_wavefronts_shared": 5.0, "smsp__inst_executed.sum": 10.0}
    one = Profile("kernel:one", "8x8x8", ("one",), {}, counts, metrics)
    wavefronts = "memory_l1_wavefronts_shared: 5 emulated, 4 by ncu"
    assert disagreements(one, {**emulated, "lts__t_sector_hit_rate.pct": 0.0}) == [
        wavefronts, "smsp__inst_executed.sum: 10 emulated, 11 by ncu",
    ]  # fmt: skip
    assert disagreements(replace(one, kernels=("one", "two")), emulated) == [wavefronts]


def test_a_kernel_that_waits_may_look_more_often_on_a_gpu() -> None:
    waiting = Profile("kernel:one", "8x8x8", ("one",), {}, {"inst_executed": 10.0}, {}, opcodes={"SYNCS": 2})
    assert disagreements(waiting, {"inst_executed": 9.0}) == []
    assert disagreements(waiting, {"inst_executed": 11.0}) == ["inst_executed: 11 emulated, 10 by ncu"]
    assert disagreements(replace(waiting, opcodes={"LDS": 2}), {"inst_executed": 9.0}) == [
        "inst_executed: 9 emulated, 10 by ncu"
    ]


def test_tickets_decide_which_threads_have_work() -> None:
    counts = {"inst_executed": 10.0, "thread_inst_executed_true": 300.0}
    one = Profile("kernel:one", "8x8x8", ("one",), {}, counts, {}, opcodes={"ATOMG": 2})
    assert disagreements(one, {"inst_executed": 10.0, "thread_inst_executed_true": 290.0}) == []
    assert disagreements(one, {"inst_executed": 9.0, "thread_inst_executed_true": 290.0}) == [
        "inst_executed: 9 emulated, 10 by ncu"
    ]


class Noting:
    """A contestant, and the driver's switches, that keep what was done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def prepare(self, work: Work) -> Noting:
        assert set(work.flat) == {"a", "b", "c"}
        self.done.append(f"prepare {work.problem['m']}")
        return self

    def run(self) -> None:
        self.done.append("run")

    def turn(self, **_timing: Any) -> Any:
        raise AssertionError("nothing is timed")

    def facts(self) -> dict[str, Any]:
        return {"library": "noting"}


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> Noting:
    noting = Noting()
    monkeypatch.setattr(ncu_target, "make_contestant", lambda _spec: noting)
    monkeypatch.setattr(ncu_target, "open_driver", lambda: noting.done.append)
    return noting


def test_profiling_is_on_around_the_second_execution(
    noting: Noting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, done = tmp_path / "plan", tmp_path / "done"
    problems = [problem.to_json() for problem in GemmOp().parse_sizes("4,8x4x2")]
    plan.write_text(json.dumps({"op": "gemm", "problems": problems, "specs": [Spec("x", "library").to_json()]}))
    monkeypatch.setattr(sys, "argv", ["ncu_target", str(plan), str(done)])
    ncu_target.main()
    each = ["run", "cuProfilerStart", "run", "cuProfilerStop"]
    assert noting.done == ["prepare 4", *each, "prepare 8", *each]
    told = json.loads(done.read_text())
    assert [(item["contestant"], item["size"], item["launches"]) for item in told] == [
        ("x", "4x4x4", None), ("x", "8x4x2", None),
    ]  # fmt: skip
