"""`gemmlab bench`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gemmlab.cli.app import build_app
from gemmlab.core.records import Record, Sample, load_record
from gemmlab.core.records import Result as Timed
from gemmlab.devices.device import DeviceInfo
from gemmlab.devices.device_name import CPU, DeviceIdentity
from gemmlab.instruments import defaults
from gemmlab.timing import bench as bench_module
from gemmlab.timing.bench_plan import Plan, Progress
from gemmlab.timing.peers import Spec
from gemmlab.timing.suite.shapes import shipped_suite


class FakeDevice(DeviceIdentity):
    device_name = CPU

    def describe(self) -> DeviceInfo:
        return DeviceInfo("cpu", "a processor", {"lanes": 8})


def _timed(name: str, role: str, time_us: float, verified: bool | None = True, **facts: Any) -> Timed:
    samples = tuple(Sample(0, index, time_us, 1, 1, (time_us,)) for index in range(3))
    return Timed(name, {}, "10x10x10", 2000, 1, {"role": role, **facts}, samples, verified)


RESULTS = (
    _timed("gemmlab", "library call", 2.0, library="gemmlab", version="1"),
    _timed("numpy", "peer", 3.0, library="NumPy on openblas", version="2", core_type="Zen", thread_runtime="pthreads"),
    _timed("probe", "peak", 1.0),
)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the verb with a measured record put in place of measuring; keeps the plan."""
    plans: list[Plan] = []

    def call(*arguments: str, results: tuple[Timed, ...] = RESULTS) -> Result:
        def fake(plan: Plan, *, device: dict[str, Any], progress: Any) -> Record:
            plans.append(plan)
            progress(Progress(1, 2, "numpy [bold]"))
            return Record("bench", "gemm", {}, device, None, results, ("a note",))

        monkeypatch.setattr(bench_module, "run_bench", fake)
        monkeypatch.setattr(defaults, "open_device", lambda *_: FakeDevice())
        return CliRunner(env={"COLUMNS": "200"}).invoke(build_app(), ["bench", *arguments])

    call.plans = plans  # type: ignore[attr-defined]
    return call


def test_a_table_with_versions_core_types_and_ratios(bench: Any) -> None:
    result = bench("--peers", "numpy")
    assert result.exit_code == 0, result.output
    for part in ("NumPy on openblas", "Zen", "pthreads", "10³", "PASS", "50.0%", "1.500* 1.500-1.500", "a note"):
        assert part in result.stdout
    assert "gemmlab / fastest peer, 1 thread, 1 size: 1.500" in result.stdout


def test_json_is_all_there_is_on_standard_output(bench: Any) -> None:
    result = bench("--peers", "numpy", "--json", "--target", "1.0", "--floor", "0.95")
    document = json.loads(result.stdout)
    assert document["record"]["schema"] == "gemmlab.record/2"
    assert document["record"]["device"]["name"] == "a processor"
    assert document["summary"]["rows"][0]["ratios"]["numpy"]["value"] == 1.5
    assert document["verdict"] == {"passed": True, "failures": []}
    assert result.exit_code == 0


def test_options_reach_the_plan(bench: Any) -> None:
    bench("--peers", "numpy,numpy:Haswell", "--sizes", "32,8x4x2", "--threads", "1, 1", "--rounds", "4", "--processes",
          "2", "--seed", "9", "--no-verify")  # fmt: skip
    plan = bench.plans[0]
    assert [spec.name for spec in plan.contestants] == ["gemmlab", "numpy", "numpy:Haswell"]
    assert [problem.label for problem in plan.problems] == ["32x32x32", "8x4x2"]
    assert (list(plan.threads), plan.rounds, plan.processes, plan.seed, plan.verify) == ([1], 4, 2, 9, False)
    assert (plan.mode, plan.baseline) == ("warm", Spec("baseline:naive_ijk", "kernel", kernel="naive_ijk"))
    bench("--peers", "numpy", "--mode", "cold", "--no-naive")
    assert (bench.plans[1].mode, bench.plans[1].baseline) == ("cold", None)
    assert {spec.mode for spec in bench.plans[1].contestants} == {"cold"}
    bench("--peers", "none", "--precision", "float32, highest", "--reproducible")
    names = ["gemmlab:float32", "gemmlab:float32:reproducible", "gemmlab", "gemmlab:reproducible"]
    assert [spec.name for spec in bench.plans[2].contestants] == names
    bench("--peers", "none", "--packed")
    assert [(spec.name, spec.packed) for spec in bench.plans[3].contestants] == [
        ("gemmlab", False), ("gemmlab:packed", True)
    ]  # fmt: skip


def test_the_suite_s_shapes_are_the_sizes(bench: Any) -> None:
    bench("--suite", "--peers", "none", "--no-verify")
    assert [problem.label for problem in bench.plans[0].problems] == [
        shape.problem.label for shape in shipped_suite().shapes if shape.op == "gemm"
    ]
    bench("--suite", "--family", "layouts", "--peers", "none", "--no-verify")
    assert {problem.label for problem in bench.plans[1].problems} >= {"1024x1024x1024 tt", "300x2000x700"}
    assert len(bench.plans[1].problems) == len(shipped_suite().of_family("layouts"))


@pytest.mark.in_turns(20)
def test_configurations_are_contestants_and_have_a_table(bench: Any) -> None:
    results = tuple(_timed(f"kernel:packed[KC={kc}]", "rung", time) for kc, time in ((128, 5000.0), (256, 2000.0)))
    asked = ("packed", "--peers", "none", "--config", "KC=128", "--config", "KC=256,NC=256")
    told = bench(*asked, results=results).stdout
    assert [line.split() for line in told.splitlines()[-3:-1]] == [["KC=128", "5"], ["KC=256", "2*"]]
    names = [spec.name for spec in bench.plans[0].contestants]
    assert names == ["kernel:packed[KC=128]", "kernel:packed[KC=256,NC=256]"]
    (table,) = json.loads(bench(*asked, "--json", results=results).stdout)["configurations"]
    assert table == {"kernel": "packed", "threads": 1, "sizes": ["10x10x10"],
                     "rows": {"KC=128": [5.0], "KC=256": [2.0]}}  # fmt: skip
    bench("packed", "--configs", "3", "--peers", "none")
    assert len(bench.plans[2].contestants) == 3
    assert "configurations" not in json.loads(bench("packed", "--json").stdout)


def test_the_record_is_saved(bench: Any, tmp_path: Path) -> None:
    assert bench("--peers", "", "--save", str(tmp_path / "r.json")).exit_code == 0
    assert load_record(tmp_path / "r.json.gz").results == RESULTS


def test_wrong_results_and_missed_targets_end_with_1(bench: Any) -> None:
    wrong = (_timed("gemmlab", "library call", 2.0, verified=False), RESULTS[1])
    result = bench("--peers", "numpy", results=wrong)
    assert (result.exit_code, "FAIL" in result.stdout) == (1, True)
    assert "wrong result: gemmlab at 10x10x10" in result.stderr
    missed = bench("--peers", "numpy", "--target", "1.6")
    assert (missed.exit_code, "targets missed" in missed.stdout) == (1, True)
    alone = bench("--peers", "numpy", results=RESULTS[1:])
    assert (alone.exit_code, "only peers could be timed" in alone.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--device", "cuda:999"], 3, "cuda"),
        (["--device", "emulated", "--target", "1"], 2, "nothing is timed"),
        (["--device", "emulated", "packed"], 2, "packed is a kernel for cpu, not for emulated"),
        (["--device", "cpu", "--mode", "frozen"], 2, "cannot time with frozen caches"),
        (["--sizes", "12y"], 2, "12y"),
        (["--sizes", "0"], 2, "size 0x0x0: there is nothing to compute"),
        (["--sizes", "32,8x4x0"], 2, "size 8x4x0: there is nothing to compute"),
        (["--threads", "0"], 2, "--threads"),
        (["--threads", "two"], 2, "two"),
        (["--threads", "1000000"], 2, "CPUs"),
        (["--peers", "blas"], 2, "no contestant 'blas'"),
        (["--peers", "mine=/nonexistent/lib.so"], 2, "mine: no library at"),
        (["--rounds", "0"], 2, "rounds = 0"),
        (["--op", "sort"], 2, "sort"),
        (["nosuchkernel"], 2, "nosuchkernel"),
        (["--config", "KC=128"], 2, "name the kernel"),
        (["packed", "--config", "MC"], 2, "write NAME=VALUE"),
        (["--device", "emulated", "naive", "--configs", "2"], 2, "--config, --configs: on emulated:sm_90 nothing"),
        (["--save", "/nonexistent/r.json"], 2, "no folder"),
        (["--suite", "--sizes", "64"], 2, "--suite, --sizes: name one of them"),
        (["--reproducible", "--op", "reduce"], 2, "--reproducible is for the library call of products"),
        (["--packed", "--op", "batch"], 2, "--packed is for the library call of products on a CPU"),
        (["--packed", "--precision", "bf16x6"], 2, "--packed: a packed operand is multiplied in float32"),
        (
            ["naive", "--packed", "--device", "emulated:sm_80"],
            2,
            "--packed, --reproducible: on emulated:sm_80 nothing is timed",
        ),
        (["naive_ijk", "--packed"], 2, "--packed is for the library call of products on a CPU"),
        (["naive_ijk", "--reproducible"], 2, "--reproducible is for the library call of products"),
        (["--family", "squares"], 2, "--family is for --suite"),
        (["--suite", "--family", "round"], 2, "no family 'round' in the suite; families are squares"),
        (["--suite", "--family", "batches"], 2, "no shape of gemm in batches; write --op batch"),
        (["packed", "--precision", "tf32"], 2, "--precision is for the library call"),
        (["--precision", "highest,half"], 2, "--precision half: precisions are highest, float32"),
        (["--sizes", "64:zz"], 2, "'zz' is no option"),
    ],
)
def test_bad_requests(arguments: list[str], code: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "--device" not in arguments:
        monkeypatch.setattr(defaults, "open_device", lambda *_: FakeDevice())
    result = CliRunner().invoke(build_app(), ["bench", *arguments])
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert not result.stdout
