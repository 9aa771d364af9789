"""Asynchronous copies as Nsight Compute counts them: the emulator by the rule, and the rule against what it counted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

import profiled
from copy_rule import Copied, counted
from probes import COPIES, GLOBAL_WORDS, Probe, copies
from recorded_rungs import recorded

from gemmlab.core.counters import ASYNC_COPY, GLOBAL_LOAD, Counters, SiteCounters
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.observe.ncu import disagreements
from support.cuda_calls import CudaFile

READ = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def run(file: CudaFile, probe: Probe) -> tuple[Counters, SiteCounters, Copied]:
    """What the emulator counts, of the copy too, and the latter by the rule."""
    ran = file.run(probe.kernel, probe.grid, probe.threads, probe.args)
    assert not [hazard for hazard in ran.hazards if hazard.kind != "race"], probe.name
    assert ran.counters is not None
    (site,) = ran.counters.of_kind(ASYNC_COPY)
    source, target = (4 * np.asarray(words) for words in probe.args[:2])
    lanes = {lane: (int(source[lane]), int(target[lane])) for lane in range(32) if source[lane] >= 0}
    return ran.counters, site, counted(site.text, int(probe.kernel[5:].partition(",")[0]), lanes)


def on_page(site: SiteCounters) -> tuple[int, int, int]:
    return site.page_wavefronts, site.page_wavefronts_ideal, site.page_sectors


@pytest.mark.slow
def test_the_rule_gives_every_probe_as_it_was_profiled() -> None:
    file, wrong, seen = CudaFile(EmulatedDevice("sm_90"), COPIES), [], 0
    for probe in copies():
        counters, site, rule = run(file, probe)
        beside = sum(load.sectors for load in counters.of_kind(GLOBAL_LOAD))
        assert (site.executed, site.requests) == (1, 1)
        for row in profiled.rows(probe.name):
            if "LDGSTS" in row.text:
                names = ("l1_wavefronts_shared", "l1_wavefronts_shared_ideal", "l2_theoretical_sectors_global")
                counts = [row.values[f"memory_{name}"] for name in names]
                read = profiled.totals(probe.name)[READ] - beside
                seen += 1
                if [*counts, read] != [rule.wavefronts, rule.ideal, rule.sectors, rule.read]:
                    wrong.append((probe.name, counts, read, rule))
    assert (seen, wrong) == (54, [])


def scattered() -> Iterator[Probe]:
    """Lanes that copy from anywhere to anywhere, of the last kernel only some."""
    rng, data = np.random.default_rng(3), np.arange(GLOBAL_WORDS, dtype=np.float32)
    for kernel in ("copy<16, 1, 0>", "copy<16, 0, 0>", "copy<8, 0, 0>", "copy<4, 0, 1>"):
        words = int(kernel[5:].partition(",")[0]) // 4
        for reach in (8, 40, 200, 500):
            source, target = (words * rng.integers(0, reach, 32) for _ in range(2))
            if kernel.endswith("1>"):
                source = np.where(rng.random(32) < 0.4, -1, source)
            args = (source.astype(np.int32), target.astype(np.int32), data, np.zeros(32, np.float32))
            yield Probe(f"{kernel} within {reach}", COPIES, kernel, args)


@pytest.mark.in_turns(20)
def test_the_emulator_counts_by_the_rule_whatever_is_copied() -> None:
    file, wrong = CudaFile(EmulatedDevice("sm_90"), COPIES), []
    for probe in (*copies(), *scattered()):
        _counters, site, rule = run(file, probe)
        if on_page(site) != (rule.wavefronts, rule.ideal, rule.sectors):
            wrong.append((probe.name, on_page(site), rule))
    assert not wrong


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("rung", ["async_copy", "mma_tf32_pipelined", "short_k"])
def test_a_rung_that_copies_counts_as_ncu_counts(rung: str) -> None:
    one, bound = recorded(rung)
    totals = {name: metric.value for name, metric in bound.observe().counters.totals().items()}
    assert totals["memory_l2_theoretical_sectors_global"] > 0
    assert disagreements(one, totals) == []


def test_a_swizzle_within_lines_costs_nothing() -> None:
    lanes = {lane: (16 * lane, 16 * (lane ^ 3)) for lane in range(32)}
    assert counted("LDGSTS.E.BYPASS.LTC128B.128 [R3], desc[UR22][R222.64]", 16, lanes) == Copied(4, 4, 16, 16)


def test_conflicts_of_both_sides_are_added_through_l1() -> None:
    # Each half of the warp from one line, and lanes i and i + 16 from one bank; to one bank in pairs.
    lanes = {lane: (256 * (lane // 16) + 4 * (lane % 16), 128 * (lane % 2) + 4 * (lane // 2)) for lane in range(32)}
    assert counted("LDGSTS.E [R1], desc[UR4][R2.64]", 4, lanes) == Copied(3, 1, 4, 4)
