"""Counters: sums by name, opcodes by modifier, launches merged, hazards in words."""

from __future__ import annotations

import pytest

from gemmlab.core.counters import (
    ASYNC_COPY,
    BARRIER,
    GLOBAL_LOAD,
    SHARED_LOAD,
    Counters,
    Metric,
    Observation,
    SiteCounters,
    merge,
)
from gemmlab.core.hazard import Hazard

LOAD = SiteCounters(
    0x40, "LDS.128", executed=10, active_threads=320, predicated_on_threads=300, kind=SHARED_LOAD, requests=10,
    wavefronts=80, wavefronts_ideal=40,
)  # fmt: skip
FETCH = SiteCounters(
    0x10, "LDG.E.128.CONSTANT", executed=4, active_threads=128, predicated_on_threads=64, kind=GLOBAL_LOAD, requests=2,
    sectors=32,
)  # fmt: skip
COPY = SiteCounters(
    0x30, "LDGSTS.E.128", executed=1, kind=ASYNC_COPY, sectors=16, wavefronts=4, wavefronts_ideal=4, page_wavefronts=12,
    page_wavefronts_ideal=3, page_sectors=32,
)  # fmt: skip
FMA = SiteCounters(0x50, "FFMA", executed=100, active_threads=3200, predicated_on_threads=3200)
BAR = SiteCounters(0x60, "BAR.SYNC.DEFER_BLOCKING", executed=8, kind=BARRIER)
COUNTERS = Counters("k", "test", (FETCH, COPY, LOAD, FMA, BAR))


def test_totals_sum_the_sites_of_their_kind() -> None:
    totals = {name: metric.value for name, metric in COUNTERS.totals().items()}
    assert totals["smsp__inst_executed.sum"] == 123
    assert totals["smsp__thread_inst_executed.sum"] == 3648
    assert totals["smsp__thread_inst_executed_pred_on.sum"] == 3564
    assert totals["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"] == 3200
    assert totals["memory_l1_wavefronts_shared"] == 80 + 12
    assert totals["memory_l1_wavefronts_shared_ideal"] == 40 + 3
    assert totals["memory_l2_theoretical_sectors_global"] == 32 + 32
    assert totals["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 2


def test_what_a_device_adds_has_the_last_word() -> None:
    metric = Metric(7, "approximate", "sampled")
    counters = Counters("k", "test", (FMA,), {"smsp__inst_executed.sum": metric})
    assert counters.totals()["smsp__inst_executed.sum"] == metric


def test_facts_name_each_kind_of_access() -> None:
    facts = COUNTERS.facts()
    assert facts["shared_load_excess"] == 40
    assert facts["global_load_sectors_per_request"] == 16
    assert facts["shared_store_excess"] == facts["local_load_sectors_per_request"] == 0
    assert facts["barriers"] == 8
    assert facts["threads_per_instruction"] == pytest.approx(3564 / 123)


def test_opcodes_are_found_by_base_and_modifiers() -> None:
    assert COUNTERS.executed("LDG") == 4
    assert COUNTERS.executed("LDG.128") == 4
    assert COUNTERS.executed("LDG.64") == 0
    assert COUNTERS.executed("LD") == 0
    assert list(COUNTERS.opcodes().items())[:2] == [("FFMA", 100), ("LDS", 10)]


def test_launches_of_one_kernel_add_up_site_by_site() -> None:
    hazard = Hazard("race", "k", (0, 0, 0), (1, 0, 0), 4)
    merged = merge([Observation(COUNTERS), Observation(COUNTERS, (hazard,), stopped=True)])
    assert merged.stopped
    assert not merge([Observation(COUNTERS, (hazard,))] * 2).stopped
    assert merged.counters.kernel == "k"
    assert [site.executed for site in merged.counters.sites] == [8, 2, 20, 200, 16]
    assert merged.counters.of_kind(SHARED_LOAD)[0].wavefronts_excessive == 80
    assert merged.hazards == (hazard,)


def test_launches_of_two_kernels_keep_their_sites_apart() -> None:
    merged = merge([Observation(Counters(name, "test", (FMA,), {"x": Metric(2)})) for name in ("one", "two")])
    assert merged.counters.kernel == "one + two"
    assert [site.executed for site in merged.counters.sites] == [100, 100]
    assert merged.counters.totals()["x"].value == 4
    with pytest.raises(ValueError, match="nothing"):
        merge([])


def test_a_hazard_says_where_both_sides_are() -> None:
    hazard = Hazard("race", "k", (1, 0, 0), (32, 0, 0), 0x400, "k.cu", 12, 15, 3, "two threads store")
    assert hazard.explain() == (
        "race at k.cu:12 and line 15 (kernel k, block (1, 0, 0), thread (32, 0, 0), address 0x400, 3 times): "
        "two threads store"
    )
    assert Hazard("deadlock", "k", (0, 0, 0), (0, 0, 0), None).explain().startswith("deadlock at k (")
