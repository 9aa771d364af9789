"""Records that are not compared, and what `compare` says of records that differ in more than times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gemmlab.core.errors import RecordError, UsageError
from gemmlab.core.records import Record
from gemmlab.results.comparison import (
    SAME,
    compare,
)
from support.measured_records import CPU, METHOD, record, result, verdicts

COLD = replace(METHOD, mode="cold")
ONE = result("kernel:a", [[1.0] * 5])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"op": "reduce"}, "one record is of gemm, the other of reduce"),
        ({"kind": "count"}, "'count' holds no times"),
        ({"results": (replace(ONE, label="65x65x65"),)}, "nothing to compare"),
        ({"results": (replace(ONE, samples=()),)}, "nothing to compare"),
        (
            {"results": (result("kernel:a", [[1, 0, 1]]),)},
            "'kernel:a' at '64x64x64': a time of 0 µs is not a positive number",
        ),
        ({"results": (result("kernel:a", [[1, float("nan"), 1]]),)}, "a time of nan µs is not a positive number"),
        ({"method": COLD}, "caches were warm in one and cold in the other"),
    ],
)
def test_what_cannot_be_compared(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RecordError, match=said):
        compare(record(ONE), record(ONE, **changes))


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ({**CPU, "name": "B"}, "name: A CPU, then B"),
        ({**CPU, "facts": {**CPU["facts"], "model": 8}}, "model: 7, then 8"),  # type: ignore[dict-item]
        ({**CPU, "facts": {**CPU["facts"], "logical_cpus": 4}}, "logical_cpus: 2, then 4"),  # type: ignore[dict-item]
        ({"id": "cuda:0", "name": "A CPU", "facts": {}}, "cpu, then cuda"),
    ],
)
def test_other_devices_are_refused_unless_asked_for(device: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        compare(record(ONE), record(ONE, device=device))
    found = compare(record(ONE), record(ONE, device=device), other_device=True)
    assert any(said in text for text in found.warnings)


def test_gpus_of_one_model_are_one_device() -> None:
    gpus = [{"id": f"cuda:{n}", "name": "G", "facts": {"sms": 132, "clocks": {"sm_mhz": n}}} for n in (0, 1)]
    assert verdicts(compare(record(ONE, device=gpus[0]), record(ONE, device=gpus[1]))) == [SAME]
    gpus[1]["facts"] = {"sms": 66}
    with pytest.raises(UsageError, match="sms: 132, then 66"):
        compare(record(ONE, device=gpus[0]), record(ONE, device=gpus[1]))


def test_what_else_differs_is_said() -> None:
    def run(name: str, clock: float, reasons: tuple[str, ...], version: str, peak: float, **method: Any) -> Record:
        told = result("cublas", [[1] * 5], role="peer", library="cuBLAS", version=version)
        told = replace(told, samples=tuple(replace(s, clock_mhz=clock, throttle=reasons) for s in told.samples))
        probe = result("probe", [[peak] * 5], role="peak")
        device = {"id": "cuda:0", "name": "G", "facts": {"driver": name}}
        ours = result("kernel:a", [[1] * 5], compiler=f"NVRTC {name}")
        return record(told, probe, ours, device=device, method=replace(METHOD, **method))

    old = run("580", 1980.0, (), "13.1", 1.0)
    (alone,) = compare(old, old).warnings
    assert alone.startswith("OLD and NEW: one process each.")
    said = "\n".join(compare(old, run("590", 1700.0, ("power",), "13.2", 1.2, processes=3, min_time_us=1.0)).warnings)
    for part in (
        "different versions: driver: 580, then 590", "different versions: cuBLAS version: 13.1, then 13.2 (cublas)",
        "different versions: compiler: NVRTC 580, then NVRTC 590 (kernel:a)", "OLD: one process each",
        "NEW: the clock was reduced after 5 of 15 turns: power", "1980 MHz in OLD and 1700 in NEW",
        "peak probed beside the cases is 0.833 of OLD's", "min_time_us: 3000.0, then 1.0",
    ):  # fmt: skip
        assert part in said
