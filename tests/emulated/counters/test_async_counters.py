"""What the emulator counts at each instruction of the asynchronous probes, against what Nsight Compute counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

import profiled
from async_probes import AsyncProbe, async_probes
from async_record import again
from repeated_waits import RepeatedWaits, repeated_waits

from gemmlab.core.counters import WAITS_REPEATED
from gemmlab.launching import Launched
from gemmlab.observe.ncu_report import METRICS
from gemmlab.sass.parse import parse

PROBES = list(async_probes())
TAKEN = "thread_inst_executed_true"
needs_profile = pytest.mark.skipif(
    not profiled.ASYNC_PATH.exists(), reason="no GPU has profiled the probes of the asynchronous machine yet"
)


def launched(probe: AsyncProbe) -> Launched:
    done = probe.run(f"emulated:{probe.keywords.get('arch', 'sm_90')}")
    assert not done.hazards, done.hazards[0].explain()
    return done


def waits_of(done: Launched) -> RepeatedWaits:
    return repeated_waits(parse(done.artifact.texts["sass"])[done.artifact.entry])


def disagreements(done: Launched, rows: list[profiled.Row]) -> Iterator[str]:
    """Counts that differ, but for what a repeated wait adds: executions on its way, other threads at its branch."""
    assert done.counters is not None
    waits, sites = waits_of(done), {site.address: site for site in done.counters.sites}
    for row in rows:
        if row.address in waits.timed:
            continue
        site = sites.get(row.address)
        mine = {name: site.on_page(field) if site else 0 for name, field in METRICS.items()}
        if row.address in waits.again:
            yield from (f"{row.address:#x} {row.text}: {name} {mine[name]}, and at least {mine[name]} were expected"
                        for name, value in row.values.items() if value < mine[name] and name != TAKEN)  # fmt: skip
            continue
        yield from (
            f"{row.address:#x} {row.text}: {name} {mine[name]} instead of {value}"
            for name, value in row.values.items()
            if value != mine[name] and not (name == TAKEN and row.address in waits.branches)
        )


@pytest.mark.in_turns(20)
@needs_profile
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
@pytest.mark.sampled(8)
def test_every_instruction_counts_as_nsight_compute_counts(probe: AsyncProbe) -> None:
    known = profiled.async_record()["launches"].get(probe.name)
    if known is None:
        pytest.skip("this probe was not profiled")
    done = launched(probe)
    if known["code"] != done.artifact.digest:
        pytest.skip("another compiler made the code that was profiled")
    wrong = list(disagreements(done, profiled.async_rows(probe.name)))
    assert not wrong, f"{len(wrong)} counts:\n" + "\n".join(wrong[:40])


@pytest.mark.in_turns(20)
@needs_profile
def test_only_repeated_waits_change_from_run_to_run() -> None:
    wrong = []
    for probe in PROBES:
        known = profiled.async_record()["launches"].get(probe.name, {})
        if not known.get("most"):
            continue
        done = launched(probe)
        if known["code"] == done.artifact.digest:
            waits = waits_of(done)
            allowed = waits.again | waits.branches | waits.timed
            wrong += [f"{probe.name} {row[0]:#x} {row[1]}" for row in known["most"] if row[0] not in allowed]
    assert not wrong


@pytest.mark.parametrize("probe", [probe for probe in PROBES if probe.times > 1], ids=lambda probe: probe.name)
def test_what_runs_only_after_a_failed_wait_never_runs_on_the_emulator(probe: AsyncProbe) -> None:
    done = launched(probe)
    assert done.counters is not None
    waits = waits_of(done)
    again_sites = [site for site in done.counters.sites if site.address in waits.again]
    assert again_sites
    assert not [site.text for site in again_sites if site.executed]
    assert not {site.base_opcode for site in again_sites} - {"SYNCS", "BRA", "YIELD", "WARPSYNC"}
    assert done.counters.extra[WAITS_REPEATED].value


def test_a_record_of_several_runs_keeps_least_and_most() -> None:
    text, rest = "SYNCS", [None] * (len(METRICS) - 1)
    counts = {0: (1, 1, 1), 16: (3, 5, 2), 32: (None, None, 4)}
    runs: list[dict[str, Any]] = [
        {"code": "c", "rows": [[at, text, run[place], *rest] for at, run in counts.items() if run[place] is not None]}
        for place in range(3)
    ]
    record = again(again(runs[0], runs[1]), runs[2])
    assert [row[2] for row in record["rows"]] == [1, 2, 0]
    assert {row[0]: row[2] for row in record["most"]} == {16: 5, 32: 4}
    assert record["runs"] == 3
    assert again(record, {"code": "other", "rows": runs[0]["rows"]}) == record
