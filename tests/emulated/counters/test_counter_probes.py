"""What the emulator counts against what was measured on an H200, pattern by pattern and site by site."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gemmlab.devices.emulated", reason="there is no emulated device yet")
pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

import profiled
from launch_probes import rungs
from probes import GLOBAL_WORDS, PATTERNS, PROBES, Probe, copies, global_patterns, oracle, probes

from gemmlab.core.counters import GLOBAL_LOAD, GLOBAL_STORE, SHARED_LOAD, SHARED_STORE, Counters, SiteCounters
from gemmlab.devices.emulated import ARCHITECTURES, EmulatedDevice
from support.cuda_calls import CudaFile, Ran

WIDTH = {1: "", 2: ".64", 4: ".128"}
KINDS = {"ld": SHARED_LOAD, "st": SHARED_STORE}
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
SCALE = (4096 // 128) ** 3
"""From the size that is run to that of the published figures: all conflicts are in the k-loop."""


@cache
def file_on(arch: str, path: Path) -> CudaFile:
    return CudaFile(EmulatedDevice(arch), path)


def run(probe: Probe, arch: str) -> Ran:
    ran = file_on(arch, probe.file).run(probe.kernel, probe.grid, probe.threads, probe.args)
    # Patterns in which lanes store to one word are races of their own making: what they cost is asked here.
    unexpected = [
        hazard
        for hazard in ran.hazards
        if not (probe.kernel.startswith(("shared_store", "copy")) and hazard.kind == "race")
    ]
    assert not unexpected, unexpected[0].explain()
    return ran


def counters_of(ran: Ran) -> Counters:
    assert ran.counters is not None
    return ran.counters


def last_of_width(ran: Ran, kind: str, length: int) -> SiteCounters:
    """The access under test: the loads and stores around it that fill and read back are of one word."""
    opcode = {SHARED_LOAD: "LDS", SHARED_STORE: "STS", GLOBAL_LOAD: "LDG", GLOBAL_STORE: "STG"}[kind]
    sites = [site for site in counters_of(ran).of_kind(kind) if site.base_opcode == opcode]
    exact = [site for site in sites if (".128" in site.opcode, ".64" in site.opcode) == (length == 4, length == 2)]
    return exact[-1] if kind != GLOBAL_STORE or length == 1 else exact[0]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_wavefronts_are_those_measured_on_an_h200(arch: str) -> None:
    wrong = []
    for measured in oracle():
        words = np.array(measured.words, np.int32)
        name = "shared_load" if measured.op == "ld" else "shared_store"
        probe = Probe("", PROBES, f"{name}<{measured.length}>", (words, np.zeros(32, np.float32)))
        site = last_of_width(run(probe, arch), KINDS[measured.op], measured.length)
        if (site.wavefronts, site.wavefronts_ideal) != (measured.wavefronts, measured.ideal):
            wrong.append((measured, site.wavefronts, site.wavefronts_ideal))
    assert not wrong


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("length", [1, 2, 4])
def test_sectors_are_the_distinct_32_bytes_that_the_lanes_touch(length: int) -> None:
    out, room = np.zeros(32, np.float32), np.zeros(GLOBAL_WORDS, np.float32)
    for name, words in global_patterns(length).items():
        touched = {(4 * (int(word) + part)) // 32 for word in words for part in range(length)}
        load = run(Probe(name, PROBES, f"global_load<{length}>", (words, room, out)), "sm_90")
        site = max((site for site in counters_of(load).of_kind(GLOBAL_LOAD)), key=lambda site: site.address)
        assert (site.requests, site.sectors) == (1, len(touched)), name
        store = run(Probe(name, PROBES, f"global_store<{length}>", (words, room)), "sm_90")
        (site,) = counters_of(store).of_kind(GLOBAL_STORE)
        assert (site.requests, site.sectors) == (1, len(touched)), name


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("kernel", "loads", "stores"),
    [("tiled_2d", 402_653_184, 100_663_296), ("tiled_2d_vector", 268_435_456, 33_554_432)],
)
def test_published_conflicts_of_two_gemm_kernels_come_out(kernel: str, loads: int, stores: int) -> None:
    n = 128
    ones = [np.ones((n, n), np.float32) for _ in range(3)]
    ran = run(Probe(kernel, PATTERNS, kernel, (*ones, np.int32(n)), (n // 64, n // 64), 64), "sm_90")
    assert (ran.outputs[2] == n).all()
    assert {name: value * SCALE for name, value in conflicts(ran).items()} == {"ld": loads, "st": stores}


def conflicts(ran: Ran) -> dict[str, float]:
    """What the published profile counts: wavefronts that the hardware adds, whatever the source page calls ideal."""
    totals = counters_of(ran).totals()
    return {op: totals[CONFLICTS.format(op)].value for op in ("ld", "st")}


@pytest.mark.in_turns(20)
def test_lanes_that_stay_away_are_counted_as_off() -> None:
    where = np.where(np.arange(32) % 3 == 0, -1, np.arange(32) * 4).astype(np.int32)
    ran = run(Probe("", PROBES, "shared_load_some<1>", (where, np.zeros(32, np.float32))), "sm_90")
    site = last_of_width(ran, SHARED_LOAD, 1)
    assert (site.executed, site.predicated_on_threads, site.wavefronts) == (1, 21, 3)


needs_profile = pytest.mark.skipif(not profiled.available(), reason="no GPU has profiled the counter probes yet")


@pytest.mark.slow
@needs_profile
def test_every_site_of_every_probe_counts_as_ncu_counts() -> None:
    wrong = [
        said
        for probe in (*probes(), *copies())
        for said in disagreements(probe.name, counters_of(run(probe, profiled.ARCH)))
    ]
    assert not wrong, f"{len(wrong)} sites:\n" + "\n".join(wrong[:40])


@pytest.mark.in_turns(20)
@needs_profile
def test_every_site_of_the_rungs_counts_as_ncu_counts() -> None:
    device = EmulatedDevice(profiled.ARCH)
    wrong = [said for name, bound in rungs(device) for said in disagreements(name, bound.observe().counters)]
    assert not wrong, f"{len(wrong)} sites:\n" + "\n".join(wrong[:40])


@pytest.mark.slow
@needs_profile
def test_bank_conflicts_are_those_of_the_hardware_counters_where_nothing_else_runs() -> None:
    wrong = []
    for probe in probes():
        counted = profiled.totals(probe.name)
        mine = conflicts(run(probe, profiled.ARCH))
        wrong += [(probe.name, op) for op in mine if mine[op] != counted.get(CONFLICTS.format(op), mine[op])]
    assert not wrong


def disagreements(launch: str, counters: Counters) -> list[str]:
    sites = {site.address: site for site in counters.sites}
    told = (profiled.disagreement(row, sites.get(row.address)) for row in profiled.rows(launch))
    return [f"{launch} {said}" for said in told if said]
