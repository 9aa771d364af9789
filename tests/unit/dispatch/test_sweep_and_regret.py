"""The makers that time many kernels: on scripted times, and on the emulator at tiny products."""

from __future__ import annotations

import json
import random
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.devices.select import open_device
from gemmlab.dispatch.choice_values import Candidate, Choice
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm_problem import GemmProblem
from support.cuda_source import needs_compiler

NAIVE = {"BM": 8, "BN": 8, "UNROLL": 4}


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_without_a_gpu_both_end_with_3(
    maker: Callable[[str], ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = ["--device", "cuda:999"]
    assert maker("sweep_kernels").main([str(tmp_path / "a"), "--kernels", "naive", "--sizes", "8", *nowhere]) == 3
    assert maker("regret").main(["1", str(tmp_path / "b"), *nowhere]) == 3
    assert capsys.readouterr().err.count("cuda") >= 2
    assert not list(tmp_path.iterdir())


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_sweep_goes_on_where_it_ended(
    maker: Callable[[str], ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep, path = maker("sweep_kernels"), tmp_path / "sweep.jsonl"
    named = ["naive:BM=8,BN=8,UNROLL=4", "block_tile:BM=16,BN=16,BK=8"]
    asked = [str(path), "--sizes", "5x6x7", "--device", "emulated:sm_90", "--repeats", "2"]
    assert sweep.main([*asked, "--kernels", *named, "--seconds", "0"]) == 0
    assert "2 left: call it again" in capsys.readouterr().out
    assert sweep.main([*asked, "--kernels", named[0], "--layouts", "nn,tt"]) == 0
    assert "all timed" in capsys.readouterr().out
    with path.open("a") as file:
        file.write('{"size": "5x6x7", "ker')  # a line that was cut off
    assert sweep.main([*asked, "--kernels", *named, "--slow", "0"]) == 0
    header, *lines = lines_of(path)
    assert header["schema"] == sweep.SCHEMA
    assert [(line["kernel"], line["size"]) for line in lines] == [
        ("naive", "5x6x7"), ("naive", "5x6x7 tt"), ("block_tile", "5x6x7"),
    ]  # fmt: skip
    naive, transposed, block = lines
    assert (naive["config"], naive["runs"], naive["right"], naive["threads"]) == (NAIVE, 2, True, 64)
    assert 0 < naive["least_us"] <= naive["us"]
    assert transposed["refused"] == "reads nn"
    assert (block["runs"], block["blocks"]) == (1, 1)  # slower than 0 times the best


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_wrong_kernel_has_no_time(
    maker: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker("sweep_kernels")
    quick = sys.modules["quick_times"]
    text = Path(find_kernel("naive").path).read_text(encoding="utf-8")
    path = tmp_path / "broken.cu"
    path.write_text(text.replace("naive", "broken"), encoding="utf-8")
    good = user_kernel(path)
    problem, trial = GemmProblem(9, 40, 5), quick.Trial("broken", NAIVE)
    monkeypatch.setattr(quick, "find_kernel", lambda _name: good)
    times = quick.QuickTimes(open_device("emulated:sm_90"), [problem, GemmProblem(3, 3, 3)])
    assert times.right(problem, trial)
    assert times.right(problem, trial)
    # Nothing is written now: what the last kernel left is that of another alpha.
    monkeypatch.setattr(quick.BoundKernel, "run", lambda _self: None)
    assert not times.right(problem, trial)


@pytest.mark.in_turns(20)
@needs_compiler
def test_batches_are_swept_too(maker: Callable[[str], ModuleType], tmp_path: Path) -> None:
    sweep, path = maker("sweep_kernels"), tmp_path / "sweep.jsonl"
    asked = ["--op", "batch", "--sizes", "3*5x6x7:nt:b0,2*4:ldc+3", "--device", "emulated:sm_90", "--repeats", "1"]
    assert sweep.main([str(path), "--kernels", "batched", *asked]) == 0
    assert [line["right"] for line in lines_of(path)[1:]] == [True, True]


def test_a_file_that_is_no_sweep_is_refused(maker: Callable[[str], ModuleType], tmp_path: Path) -> None:
    sweep = maker("sweep_kernels")
    for text in ("[]\n", "no\n", '{"schema": "other"}\n'):
        (tmp_path / "x").write_text(text)
        with pytest.raises(UsageError, match="sweep"):
            sweep.read_lines(tmp_path / "x")


def candidate(name: str, us: float) -> Candidate:
    return Candidate(name, "float32", {"BM": 1}, us, False, 1, 1, 1, True)


class Scripted:
    """Times by kernel: at first, and when timed again."""

    def __init__(self, us: Mapping[str, tuple[float, float]], wrong: str = "") -> None:
        self.us, self.wrong, self.runs = us, wrong, list[tuple[str, int]]()
        self.seen: dict[str, int] = {}

    def right(self, _problem: GemmProblem, trial: Any) -> bool:
        return bool(trial.kernel != self.wrong)

    def bound(self, _problem: GemmProblem, trial: Any) -> Any:
        def time(runs: int) -> list[float]:
            self.runs.append((trial.kernel, runs))
            at = self.seen.get(trial.kernel, 0)
            self.seen[trial.kernel] = at + 1
            return [self.us[trial.kernel][min(1, at // 2)]] * runs

        return SimpleNamespace(time=time)


def choice_of(*names: str) -> Choice:
    considered = tuple(candidate(name, 1.0) for name in names)
    return Choice(names[0], {"BM": 1}, "rule", "H200", "", "", considered=considered)


def judge(regret: ModuleType, times: Scripted, *names: str) -> dict[str, Any]:
    options, shuffle = Namespace(rounds=3, again=2), random.Random(1)  # noqa: S311 - an order, not a secret
    found: dict[str, Any] = regret.regret_at(times, GemmProblem(8, 8, 8), choice_of(*names), options, shuffle)
    return found


def test_the_best_are_timed_again_in_turns_and_the_best_of_those_counts(maker: Callable[[str], ModuleType]) -> None:
    regret = maker("regret")
    times = Scripted({"chosen": (11.0, 11.0), "lucky": (7.0, 12.0), "best": (9.0, 10.0), "slow": (90.0, 1.0)})
    found = judge(regret, times, "chosen", "lucky", "best", "slow")
    # What was fast by luck at first is not the best; what was hopeless at first is not timed again.
    assert found["best"] == {"kernel": "best", "config": {"BM": 1}, "us": 10.0}
    assert found["chosen"]["us"] == 11.0
    assert found["regret"] == pytest.approx(1.1)
    assert found["considered"] == 4
    assert [one["kernel"] for one in found["again"]] == ["best", "chosen", "lucky"]
    assert times.runs.count(("slow", 1)) == 1
    assert ("slow", 3) not in times.runs
    turns = [name for name, runs in times.runs if runs == sys.modules["best_of_all"].RUNS]
    assert sorted(turns[:3]) == sorted(turns[3:6]) == ["best", "chosen", "lucky"]


def test_a_choice_that_is_the_best_has_no_regret(maker: Callable[[str], ModuleType]) -> None:
    regret = maker("regret")
    found = judge(regret, Scripted({"chosen": (9.0, 9.0), "other": (10.0, 10.0)}), "chosen", "other")
    assert found["regret"] == 1.0
    found = judge(regret, Scripted({"chosen": (9.0, 9.0), "other": (1.0, 1.0)}, wrong="other"), "chosen", "other")
    assert (found["regret"], found["refused"]) == (1.0, {"other BM=1": "its result is wrong"})
    with pytest.raises(UsageError, match="8x8x8: the choice chosen BM=1 fails: its result is wrong"):
        judge(regret, Scripted({"chosen": (9.0, 9.0)}, wrong="chosen"), "chosen")


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_regret_is_recorded_and_goes_on(
    maker: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    regret, path = maker("regret"), tmp_path / "regret.json"
    full = shipped_table()
    entry = next(one for one in full.entries if set(one.layouts) == {"nn", "nt", "tn", "tt"} and not one.parts)
    monkeypatch.setattr(regret, "shipped_table", lambda: replace(full, entries=(entry,)))
    asked = ["5", str(path), "--shapes", "2", "--largest", "6", "--rounds", "1", "--device", "emulated:sm_90"]
    assert regret.main([*asked, "--seconds", "0"]) == 0
    assert "no product yet, 2 left" in capsys.readouterr().out
    assert regret.main(asked) == 0
    record = json.loads(path.read_text())
    assert (record["schema"], record["seed"], record["left"], len(record["shapes"])) == (regret.SCHEMA, 5, 0, 2)
    assert (record["median"], record["worst"]) == (1.0, 1.0)
    assert record["shapes"][0]["chosen"]["kernel"] == entry.kernel
    before = path.read_text()
    assert regret.main(asked) == 0
    assert path.read_text() == before
    assert regret.main(["6", *asked[1:]]) == 2
    assert "seed is 5, not 6" in capsys.readouterr().err
    assert full.correction is not None
    other = replace(full.correction, facts={**full.correction.facts, "origin": "ffff"})
    monkeypatch.setattr(regret, "shipped_table", lambda: replace(full, entries=(entry,), correction=other))
    assert regret.main(asked) == 2
    assert f"correction is {full.correction.facts['origin']!r}, not 'ffff'" in capsys.readouterr().err
    assert path.read_text() == before


@pytest.mark.in_turns(20)
@needs_compiler
def test_batches_are_swept_and_their_last_product_is_compared(
    maker: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep, path = maker("sweep_kernels"), tmp_path / "sweep.jsonl"
    asked = ["--op", "batch", "--device", "emulated:sm_90", "--repeats", "1", "--kernels", "batched"]
    assert sweep.main([str(path), *asked, "--sizes", "3*9x8x7,2*5x6x7:b0:nt"]) == 0
    assert [(line["size"], line["right"]) for line in lines_of(path)[1:]] == [
        ("3*9x8x7", True), ("2*5x6x7 nt stride_b=0", True),
    ]  # fmt: skip
    monkeypatch.setattr(sys.modules["quick_times"], "_last", lambda *_: 0)
    first = tmp_path / "first.jsonl"
    assert sweep.main([str(first), *asked, "--sizes", "3*9x8x7"]) == 0
    # The first product is right, too.
    assert lines_of(first)[1]["right"]
