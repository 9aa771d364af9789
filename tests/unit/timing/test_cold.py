"""Cold caches: every timed call comes after a flush of the operands, and the record says so."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.codegen import flush as flush_module
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.timing.arena import Arena
from gemmlab.timing.contestants.contestant import Calls, Work
from gemmlab.timing.peers import parse_contestant
from gemmlab.timing.worker import Worker

OP = GemmOp()


def test_each_timed_call_comes_after_what_must_come_before_it() -> None:
    events: list[str] = []

    def timer(calls: int, inner: int) -> list[float]:
        events.extend([f"call x{inner}"] * calls)
        return [10.0] * calls

    turn = Calls(lambda: None, timer, lambda: events.append("before")).turn(
        min_us=30, warm_us=20, inner_us=100, raw_limit=2
    )
    assert events == ["call x1"] * 2 + ["before", "call x1"] * 3
    assert (turn.calls, turn.inner, turn.time_us, turn.raw_us) == (3, 1, 10.0, [10.0, 10.0])


def test_all_operands_are_flushed_and_keep_their_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(flush_module, "flush", lambda address, nbytes: seen.append((address, nbytes)))
    flat = {name: np.ones(size, np.float32) for name, size in (("a", 5), ("b", 7))}
    work = Work("gemm", {}, 2, {}, flat, {}, 1)
    assert work.before is None
    cold = Work("gemm", {}, 2, {}, flat, {}, 1, cold=True)
    assert cold.before is not None
    cold.before()
    assert seen == [(array.ctypes.data, array.nbytes) for array in flat.values()]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("device", "mode", "cold"), [("cpu", "warm", False), ("cpu", "cold", True), ("cuda", "cold", False)]
)
def test_only_operands_in_this_machines_caches_are_flushed(
    device: str, mode: str, cold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    works: list[Work] = []

    class Noting:
        def prepare(self, work: Work) -> Any:
            works.append(work)
            return Calls.of(lambda: None)

        def facts(self) -> dict[str, Any]:
            return {}

    monkeypatch.setattr("gemmlab.timing.worker.make_contestant", lambda _spec: Noting())
    problem = GemmProblem(2, 3, 4)
    with Arena(OP, [problem], seed=0) as arena:
        worker = Worker(arena.memory)
        worker.answer({"command": "open", "spec": {"kind": "kernel", "device": device, "mode": mode}})
        worker.answer({
            "command": "prepare", "index": 0, "op": "gemm", "problem": problem.to_json(), "flops": 48, "scalars": {},
            "operands": [placed.to_json() for placed in arena.placed[0].values()], "threads": 1,
        })  # fmt: skip
        assert works[0].cold is cold
        del works[:]


def test_every_contestant_of_a_processor_is_told() -> None:
    for name in ("gemmlab", "numpy", "numpy:best", "kernel:packed"):
        assert parse_contestant(name, mode="cold").mode == "cold"


@pytest.mark.in_turns(20)
def test_a_cold_bench_is_labelled() -> None:
    arguments = ["--sizes", "48", "--peers", "numpy", "--rounds", "1", "--processes", "1", "--mode", "cold", "--json"]
    result = CliRunner().invoke(build_app(), ["bench", *arguments])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    method = answer["record"]["method"]
    assert method["mode"] == "cold"
    assert "flushed from every cache before each call" in method["notes"][0]
    assert all(inner == 1 for entry in answer["record"]["results"] for inner in entry["samples"]["inner"])
    rows = {row["contestant"]: row for row in answer["summary"]["rows"]}
    assert set(rows) == {"gemmlab", "numpy", "baseline:naive_ijk"}
    assert all(row["verified"] for row in rows.values())
