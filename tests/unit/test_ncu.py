"""Nsight Compute's figures: how ncu is called, what is read of its pages, what becomes of both."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import PeerError, ProfilerError, UsageError
from gemmlab.measure import ncu_target
from gemmlab.measure.contestants import Work
from gemmlab.measure.ncu import disagreements, group, profile
from gemmlab.measure.ncu_program import version
from gemmlab.measure.ncu_report import Instructions, totals_from_csv
from gemmlab.measure.peers import Spec

FAKE = """#!{python}
import json, sys
arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion 2025.3.1.0")
elif "--import" in arguments:
    launches = json.load(open(arguments[arguments.index("--import") + 1]))
    print("==PROF== Connected")
    if arguments[-1] == "raw":
        print('"ID","Kernel Name","gpu__time_duration.sum","smsp__inst_executed.sum","lts__t_sector_hit_rate.pct"')
        print('"","","ns","inst","%"')
        for place, name in enumerate(launches):
            print(f'"{{place}}","{{name}}","{{1000 + place}}","1,300","n/a"')
    for name in launches if arguments[-1] == "source" else ():
        print(f'"Kernel Name","{{name}}"')
        print('"#","Source","Instructions Executed","L1 Wavefronts Shared"')
        print('"0","MOV R1, R2","1,000","0"')
        print('"16","LDS.128 R4, [R2]","300","640"')
else:
    WHEN_PROFILED
    plan, done = json.load(open(arguments[-2])), []
    launches = []
    for spec in plan["specs"]:
        for size in plan["sizes"].split(","):
            ours = spec["kind"] == "kernel"
            done.append({{"contestant": spec["name"], "size": size, "facts": {{"config": 1}},
                         "launches": 1 if ours else None}})
            launches += [spec["name"]] if ours else ["main", "reduce"]
    json.dump(done, open(arguments[-1], "w"))
    json.dump(launches, open(arguments[arguments.index("--export") + 1], "w"))
"""
SPECS = [Spec("kernel:one", "kernel"), Spec("cublas", "cublas"), Spec("kernel:two", "kernel")]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts an `ncu` on the PATH; what it does when it profiles can be added."""

    def put(when_profiled: str = "pass") -> None:
        file = tmp_path / "ncu"
        file.write_text(FAKE.format(python=sys.executable).replace("WHEN_PROFILED", when_profiled))
        file.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return put


def test_every_contestant_has_its_launches(fake: Any) -> None:
    fake()
    assert version("ncu") == "Version 2025.3.1.0"
    found = profile(SPECS, "gemm", ["8", "16"])
    assert [(item.contestant, item.size, item.kernels) for item in found] == [
        ("kernel:one", "8", ("kernel:one",)), ("kernel:one", "16", ("kernel:one",)),
        ("kernel:two", "8", ("kernel:two",)), ("kernel:two", "16", ("kernel:two",)),
        ("cublas", "8", ("main", "reduce")), ("cublas", "16", ("main", "reduce")),
    ]  # fmt: skip
    one, library = found[0], found[-1]
    assert (one.counts["inst_executed"], one.counts["memory_l1_wavefronts_shared"]) == (1300, 640)
    assert library.counts["inst_executed"] == 2600
    assert one.metrics == {"gpu__time_duration.sum": 1000, "smsp__inst_executed.sum": 1300}
    assert library.metrics["gpu__time_duration.sum"] == 1001
    assert one.facts == {"config": 1, "role": "rung", "precision": "float32"}
    assert one.opcodes == {"MOV": 1000, "LDS": 300}


def test_a_metric_that_this_ncu_does_not_know_is_done_without(fake: Any) -> None:
    fake("if any('dram__bytes_read.sum' in a for a in arguments): sys.exit('Failed to find metric dram__bytes')")
    assert len(profile(SPECS[:1], "gemm", ["8"])) == 1
    fake("sys.exit('no permission')")
    with pytest.raises(PeerError, match="ncu failed: no permission"):
        profile(SPECS[:1], "gemm", ["8"])


def test_without_ncu_that_is_said() -> None:
    with pytest.raises(ProfilerError, match="not on the PATH"):
        profile(SPECS[:1], "gemm", ["8"], ncu="no-such-profiler")


def test_launches_that_do_not_add_up_are_refused() -> None:
    launches = [Instructions("a", []), Instructions("b", [])]
    item = {"contestant": "x", "size": "8", "facts": {}, "launches": 1}
    for done in ([item], [item] * 3, [{**item, "launches": None}, item]):
        with pytest.raises(UsageError, match="2 profiled"):
            group(done, launches)
    assert [found.kernels for found in group([item, item], launches)] == [("a",), ("b",)]
    with pytest.raises(UsageError, match="1 launches were made and 0 profiled"):
        group([item], [])


def test_a_page_without_a_table_is_refused() -> None:
    with pytest.raises(UsageError, match="no table"):
        totals_from_csv("==WARNING== No kernels were profiled.\n", [".*"])


def test_only_what_is_exact_can_disagree() -> None:
    counts = {"inst_executed": 10.0, "memory_l1_wavefronts_shared": 4.0}
    metrics = {"smsp__inst_executed.sum": 11.0, "lts__t_sector_hit_rate.pct": 50.0}
    emulated = {"inst_executed": 10.0, "memory_l1_wavefronts_shared": 5.0, "smsp__inst_executed.sum": 10.0}
    assert disagreements(counts, metrics, {**emulated, "lts__t_sector_hit_rate.pct": 0.0}) == [
        "memory_l1_wavefronts_shared: 5 emulated, 4 by ncu",
        "smsp__inst_executed.sum: 10 emulated, 11 by ncu",
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
    plan.write_text(json.dumps({"op": "gemm", "sizes": "4,8x4x2", "specs": [Spec("x", "library").to_json()]}))
    monkeypatch.setattr(sys, "argv", ["ncu_target", str(plan), str(done)])
    ncu_target.main()
    each = ["run", "cuProfilerStart", "run", "cuProfilerStop"]
    assert noting.done == ["prepare 4", *each, "prepare 8", *each]
    told = json.loads(done.read_text())
    assert [(item["contestant"], item["size"], item["launches"]) for item in told] == [
        ("x", "4x4x4", None), ("x", "8x4x2", None),
    ]  # fmt: skip
