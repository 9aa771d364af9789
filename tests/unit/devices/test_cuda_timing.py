"""What is put on a stream to time a run: flushes, events, graphs."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gemmlab.devices.cuda_timing import AT_ONCE, LEAST_FLUSHED, MOST_FLUSHES, EventTimer, Mode

L2 = 60 << 20


class Stream:
    """A driver that notes calls; an event keeps how many runs had been asked for when it was recorded."""

    def __init__(self) -> None:
        self.module = SimpleNamespace(
            CUstreamCaptureMode=SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2), cuEventQuery=self.query
        )
        self.slow_host = 0
        """The number of flushes that are over by the time that the host has queued a run."""
        self.calls: list[str] = []
        self.runs = self.captured = 0
        self.capturing = False
        self.flushed: list[int] = []

    def __call__(self, function: str, *arguments: Any, what: str = "") -> Any:
        del what
        self.calls.append(function)
        match function:
            case "cuEventCreate":
                return {"runs": 0}
            case "cuEventRecord":
                arguments[0]["runs"] = self.runs
            case "cuEventElapsedTime":
                # One run takes one microsecond.
                return (arguments[1]["runs"] - arguments[0]["runs"]) / 1e3
            case "cuMemsetD32Async":
                self.flushed.append(4 * arguments[2])
            case "cuStreamBeginCapture":
                self.capturing, self.captured = True, 0
            case "cuStreamEndCapture":
                self.capturing = False
                return "graph"
            case "cuGraphInstantiate":
                return "executable"
            case "cuGraphLaunch":
                self.runs += self.captured
        return None

    def query(self, _event: Any) -> tuple[int]:
        since = self.calls[::-1].index("cuEventElapsedTime") if "cuEventElapsedTime" in self.calls else len(self.calls)
        queued = self.calls[len(self.calls) - since :]
        return (0 if queued.count("cuMemsetD32Async") <= self.slow_host * queued.count("cuEventRecord") // 2 else 600,)

    def run(self) -> None:
        if self.capturing:
            self.captured += 1
        else:
            self.runs += 1


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def make(stream: Stream) -> Callable[[Mode], EventTimer]:
    memory: Any = SimpleNamespace(allocate=lambda nbytes: SimpleNamespace(address=4096, nbytes=nbytes))
    driver: Any = stream
    return lambda mode: EventTimer(driver, memory, "stream", L2, mode)


def test_cold_runs_each_follow_a_flush_of_twice_the_cache(stream: Stream, make: Callable[[Mode], EventTimer]) -> None:
    assert make("cold").time(stream.run, 5) == pytest.approx([1.0] * 5)
    assert stream.flushed == [2 * L2] * 5
    first = stream.calls.index("cuMemsetD32Async")
    assert stream.calls[first : first + 3] == ["cuMemsetD32Async", "cuEventRecord", "cuEventRecord"]


def test_a_small_cache_is_flushed_by_a_buffer_that_keeps_the_gpu_busy(stream: Stream) -> None:
    memory: Any = SimpleNamespace(allocate=lambda nbytes: SimpleNamespace(address=4096, nbytes=nbytes))
    driver: Any = stream
    EventTimer(driver, memory, "stream", 1 << 20, "cold").time(stream.run, 1)
    assert stream.flushed == [LEAST_FLUSHED]


def test_cold_runs_in_a_row_are_flushed_one_by_one(stream: Stream, make: Callable[[Mode], EventTimer]) -> None:
    assert make("cold").time(stream.run, 4, inner=3) == pytest.approx([1.0] * 4)
    assert (stream.runs, len(stream.flushed)) == (12, 12)


@pytest.mark.parametrize(("slow", "flushes"), [(0, 1), (1, 2), (3, 4), (1000, MOST_FLUSHES)])
def test_flushes_last_until_the_host_has_queued_the_run(
    slow: int, flushes: int, stream: Stream, make: Callable[[Mode], EventTimer]
) -> None:
    stream.slow_host = slow
    timer = make("cold")
    assert timer.time(stream.run, 2) == pytest.approx([1.0] * 2)
    assert len(stream.flushed) == 2  # too few runs to judge
    assert timer.time(stream.run, 8) == pytest.approx([1.0] * 8)
    tries = flushes.bit_length()
    assert len(stream.flushed) == 2 + 8 * (2 * flushes - 1)
    assert stream.runs == 2 + 8 * tries
    timer.time(stream.run, 8)
    assert len(stream.flushed) == 2 + 8 * (2 * flushes - 1) + 8 * flushes


def test_warm_runs_are_not_flushed(stream: Stream, make: Callable[[Mode], EventTimer]) -> None:
    assert make("warm").time(stream.run, 5) == pytest.approx([1.0] * 5)
    assert stream.flushed == []
    assert "cuGraphLaunch" not in stream.calls


def test_warm_runs_in_a_row_are_one_graph(stream: Stream, make: Callable[[Mode], EventTimer]) -> None:
    assert make("warm").time(stream.run, 4, inner=25) == pytest.approx([1.0] * 4)
    assert stream.captured == 25
    assert stream.calls.count("cuGraphLaunch") == 5  # one to warm up
    assert stream.calls[-1] == "cuGraphExecDestroy"


def test_a_run_that_cannot_be_captured_ends_the_capture(stream: Stream, make: Callable[[Mode], EventTimer]) -> None:
    def fail() -> None:
        raise ValueError("not while capturing")

    with pytest.raises(ValueError, match="not while"):
        make("warm").time(fail, 2, inner=2)
    assert "cuStreamEndCapture" in stream.calls


def test_many_runs_are_queued_in_parts(stream: Stream, make: Callable[[Mode], EventTimer]) -> None:
    assert len(make("cold").time(stream.run, 2 * AT_ONCE + 1)) == 2 * AT_ONCE + 1
    assert stream.calls.count("cuStreamSynchronize") == 3
    assert stream.calls.count("cuEventCreate") == 2 * AT_ONCE
