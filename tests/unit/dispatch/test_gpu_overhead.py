"""The benchmark of a GPU call's overhead, on calls of a known cost and without a GPU."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gemmlab.core.records import from_json, to_json
from support.fake_device import FakeDevice
from support.paths import ROOT


@pytest.fixture
def overhead(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    file = ROOT / "makers" / "gpu_overhead.py"
    spec = importlib.util.spec_from_file_location("gpu_overhead", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "gpu_overhead", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "open_device", lambda _name: FakeDevice())
    monkeypatch.setitem(sys.modules, "played", SimpleNamespace(__version__="1.2"))
    return module


def test_what_calls_take_and_how_they_compare(overhead: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    now, waited = 0, list[int]()

    def takes(us: int) -> Callable[[], None]:
        def call() -> None:
            nonlocal now
            now += 1000 * us

        return call

    def contestants(_package: Any, n: int) -> Any:
        pair = overhead.pair("played", ", out", takes(3 * n), "played.mm", takes(2 * n))
        return [*pair, overhead.Contestant("played.empty", overhead.PART, pair[1].name, takes(n))], synchronise

    def synchronise() -> None:
        nonlocal now
        waited.append(now)
        now += 10**9

    monkeypatch.setattr(overhead, "CONTESTANTS", {"played": contestants, "nobody": contestants})
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now)
    record = overhead.measured(["nobody", "played"], [32, 64], 3)
    assert from_json(to_json(record)) == record
    # Waiting is not part of any time, and every burst is waited for.
    assert {(r.contestant, r.label, sample.time_us) for r in record.results for sample in r.samples} == {
        (name, f"{n}x{n}x{n}", times * n)
        for n in (32, 64)
        for name, times in (("gemmlab.gemm [played, out]", 3), ("played.mm [out]", 2), ("played.empty", 1))
    }
    assert len(waited) == 2 * 2 * 3 * (1 + 3 * (1 + overhead.BURSTS))
    assert overhead.table(record)[2:5] == [
        "| gemmlab.gemm [played, out] | 32 | 96.00 | 0.00 | 1.50 (1.50-1.50) |",
        "| played.mm [out] | 32 | 64.00 | 0.00 |  |",
        "| played.empty | 32 | 32.00 | 0.00 | 0.50 (0.50-0.50) |",
    ]
