"""The bench on a device: a configuration that crashes its worker, or is wrong, ends no search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gemmlab.core.errors import DeviceError, PeerError
from gemmlab.devices.cpu import CpuDevice
from gemmlab.kernels.by_name import NamedKernel, named_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.timing.arena import Arena
from gemmlab.timing.peers import Spec
from gemmlab.tuning import device_bench
from gemmlab.tuning.builders import Code
from gemmlab.tuning.device_bench import DeviceBench, Subject
from gemmlab.tuning.space import Space, space_of

NAMED = named_kernel("packed")
WHOLE = space_of(NAMED.kernel)
SPACE = Space(WHOLE.names, WHOLE.members[:4])
CRASHING, WRONG = 1, 2
BUSY_S = 100.0
"""Seconds until the compilers have nothing to do."""


class FakeBuilders:
    """Compilers that are done at once."""

    def __init__(self, _named: NamedKernel, count: int) -> None:
        self.count = count

    def __exit__(self, *_of: object) -> None:
        pass

    def submit(self, instance: Mapping[str, int], _target: str) -> str:
        return str(instance)

    def idle(self, seconds: float) -> bool:
        return seconds > BUSY_S

    def get(self, _key: str, _seconds: float) -> Code:
        return Code(0.5)


class FakeWorker:
    """A worker that holds every contestant of the bench, computes products by NumPy, and dies of one configuration."""

    started = 0

    def __init__(self, _spec: Spec, _threads: int, arena: Arena) -> None:
        FakeWorker.started += 1
        self.arena, self.reply, self.name = arena, dict[str, Any](), ""

    def send(self, request: Mapping[str, Any]) -> None:
        self.name = request["name"]
        place = next(at for at in range(len(SPACE)) if SPACE.text(at) in self.name)
        if request["command"] == "run":
            if place == CRASHING:
                raise PeerError("the worker died")
            a, b, c = (self.arena.placed[0][name].matrix(self.arena.memory) for name in "abc")
            c[...] = a @ b + (place == WRONG)
        self.reply = {"ok": True, "facts": {}, "time_us": 10.0 + place}

    def receive(self, _timeout_s: float) -> dict[str, Any]:
        return self.reply

    def close(self) -> None:
        pass


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> DeviceBench:
    monkeypatch.setattr(device_bench, "Builders", FakeBuilders)
    # As on a GPU, where configurations share a process.
    monkeypatch.setattr(
        device_bench, "configured", lambda spec, config: Spec(str(config), "kernel", kernel=spec.kernel, host="one")
    )
    FakeWorker.started = 0
    op = find_op("gemm")
    subject = Subject(NAMED, op, tuple(op.parse_sizes("24")), CpuDevice(), "warm", SPACE)
    return DeviceBench(subject, FakeWorker)  # type: ignore[arg-type]


def test_a_crash_is_a_fault_of_one_configuration(bench: DeviceBench) -> None:
    with bench:
        bench.submit(range(len(SPACE)))
        verdicts = []
        for place in range(len(SPACE)):
            build = bench.build(place, 1e9)
            assert build is not None
            assert not build.fault
            verdicts.append(bench.verify(place))
        assert [one.right for one in verdicts] == [True, False, False, True]
        assert "the worker died" in verdicts[CRASHING].fault
        assert verdicts[WRONG].fault.startswith("wrong result at 24x24x24: ")
        # A new one after the crash, and after the wrong result.
        assert FakeWorker.started == 3
        # What the dead worker held is opened again.
        assert [bench.turn(place).us for place in (0, 3)] == pytest.approx([10.0, 13.0])


def test_compilers_that_go_on_beyond_the_budget_end_the_search_on_a_processor(bench: DeviceBench) -> None:
    """Its times would be wrong while they run, and waiting for them would exceed the budget."""
    with bench:
        bench.submit(range(len(SPACE)))
        assert bench.build(0, bench.seconds + BUSY_S / 2) is None
        assert bench.build(0, bench.seconds + BUSY_S * 2) is not None


def test_a_worker_holds_only_so_many_configurations(bench: DeviceBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_bench, "MOST_OPEN", 2)
    with bench:
        assert [bench.turn(place).us for place in range(4)] == pytest.approx([10.0, 11.0, 12.0, 13.0])
    assert FakeWorker.started == 2


def test_a_configuration_that_the_device_cannot_execute_is_a_fault(
    bench: DeviceBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As vectors of 16 numbers on a processor that has only those of 8."""
    usual, wide = CpuDevice.target, SPACE.config(2)

    def target(device: CpuDevice, config: Mapping[str, int]) -> str:
        if wide.items() <= config.items():
            raise DeviceError("this processor has no such vectors")
        return usual(device, config)

    monkeypatch.setattr(CpuDevice, "target", target)
    with bench:
        bench.submit(range(len(SPACE)))
        builds = [bench.build(place, 1e9) for place in range(len(SPACE))]
    assert [build and build.fault for build in builds] == ["", "", "this processor has no such vectors", ""]
