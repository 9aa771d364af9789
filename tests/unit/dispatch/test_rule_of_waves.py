"""The rule of waves, which estimates times where none were measured, and the GPUs that it knows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab.core.errors import UsageError
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.choice_values import RECORD
from gemmlab.dispatch.measurements import Figures, Measurement, shipped_table
from gemmlab.dispatch.waves import estimate, gpu_model, gpu_of_facts, reads_by_words
from gemmlab.ops.gemm_problem import GemmProblem

TABLE = shipped_table()
H200 = gpu_model("H200")
MODELS = st.sampled_from(["H200", "A100", "L4", "RTX 4090", "T4"])


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000), MODELS)
@settings(max_examples=40, deadline=None)
def test_laws_of_the_rule(m: int, n: int, k: int, model: str) -> None:
    """More work never takes less time; a tile over the edge takes as many rounds as a full one."""
    where, tiles = gpu_model(model), "ceil_div(M, BM) * ceil_div(N, BN)"
    for entry in [one for one in TABLE.entries if one.grid[0] == tiles]:
        here = estimate(entry, GemmProblem(m, n, k), where, TABLE)
        assert here.us <= estimate(entry, GemmProblem(2 * m, n, k), where, TABLE).us
        assert here.us <= estimate(entry, GemmProblem(m, n, k + 1), where, TABLE).us
        if not here.resident:  # no block of the kernel fits that GPU
            assert here.us == float("inf")
            continue
        tile_m, tile_n = entry.config["BM"], entry.config["BN"]
        full = GemmProblem(-(-m // tile_m) * tile_m, -(-n // tile_n) * tile_n, k)
        # Tiles have fours of columns, so rows of B are aligned as they were.
        whole = estimate(entry, replace(full, ldb=full.n + n % 4), where, TABLE)
        assert (here.blocks, here.rounds) == (whole.blocks, whole.rounds)
        assert here.us <= whole.us


def test_the_rule_by_hand() -> None:
    entry = Measurement(
        "naive", "float32", ("nn",), "sm_75", {"BM": 64, "BN": 32}, threads=256, registers=64, smem=0,
        grid=("ceil_div(M, BM) * ceil_div(N, BN)",), figures=Figures(5.0, 0.1, 0.04),
    )  # fmt: skip
    # 65536 registers: four blocks of 256 threads with 64 each. One multiprocessor more than a wave of 132 * 4.
    one = estimate(entry, GemmProblem(64, 32, 100), H200, TABLE)
    assert (one.us, one.blocks, one.resident, one.rounds) == (5 + 100 * 0.1, 1, 4, 1)
    full = estimate(entry, GemmProblem(64 * 132, 32 * 4, 100), H200, TABLE)
    assert (full.us, full.rounds) == (5 + 100 * (4 * 0.04), 1)
    more = estimate(entry, GemmProblem(64 * 132 + 1, 32 * 4, 100), H200, TABLE)
    assert more.us == pytest.approx(5 + 100 * (4 * 0.04 + 0.1))
    assert (more.rounds, more.blocks) == (2, 133 * 4)
    # Half the clock, half the lanes: latency doubles, issue takes four times as long.
    slow = replace(H200, mhz=H200.mhz / 2, limits=replace(H200.limits, fma_lanes=64))
    assert estimate(entry, GemmProblem(64 * 132, 32 * 4, 100), slow, TABLE).us == pytest.approx(5 + 100 * 4 * 0.16)
    # The ends of a block take as long as ten steps more, whatever its steps.
    long = replace(entry, figures=Figures(5.0, 0.1, 0.04, ends=10.0))
    assert estimate(long, GemmProblem(64, 32, 100), H200, TABLE).us == pytest.approx(5 + 110 * 0.1)
    # Rows of B that do not begin on 16 bytes are read by words, and steps take longer: the ends too, the start not.
    wordy = replace(long, figures=Figures(5.0, 0.1, 0.04, ends=10.0, words=0.5))
    assert estimate(wordy, GemmProblem(64, 32, 100), H200, TABLE).us == pytest.approx(5 + 110 * 0.1)
    assert estimate(wordy, GemmProblem(64, 31, 100), H200, TABLE).us == pytest.approx(5 + 110 * 0.15)
    for layout, by_words in (("nn", True), ("nt", False), ("tn", True), ("tt", True)):
        assert reads_by_words(GemmProblem(63, 31, 99).with_layout(layout)) == by_words
    assert not reads_by_words(replace(GemmProblem(63, 32, 99), lda=101, ldc=33))
    # Sixteen blocks of seven steps meet at two levels, and each part is written and read.
    split = replace(
        entry, figures=Figures(5.0, 0.1, 0.04, 2.0), grid=(*entry.grid, "SPLITS"), steps="ceil_div(K, SPLITS)"
    )
    meeting = 2 * 2.0 + 2 * 4 * 64 * 32 * 16 / (TABLE.parts_gbs * 1e3)
    parted = estimate(split, GemmProblem(64, 32, 100), H200, TABLE, parts=16)
    assert parted.us == pytest.approx(5 + 7 * 0.1 + meeting)
    assert parted.blocks == 16
    # A block that does not fit takes for ever, and nothing takes no time.
    assert estimate(replace(entry, smem=300_000), GemmProblem(64, 32, 1), H200, TABLE).us == math.inf
    assert estimate(entry, GemmProblem(0, 32, 1), H200, TABLE).blocks == 0


def facts(capability: str, sms: int, mhz: float) -> dict[str, Any]:
    return {
        "compute_capability": capability, "sms": sms, "clock_khz": mhz * 1e3, "memory_clock_khz": 3_201_000,
        "memory_bus_bits": 6016,
    }  # fmt: skip


def test_a_gpu_by_its_driver_s_words() -> None:
    known = gpu_of_facts("NVIDIA H200", facts("9.0", 132, 1980.0))
    assert (known.known, known.limits) == ("H200", H200.limits)
    assert known.memory_gbs == pytest.approx(H200.memory_gbs, rel=0.01)
    assert known.l2_gbs == H200.l2_gbs
    assert choose(GemmProblem(512, 512, 512), known, TABLE, precision="highest").basis == RECORD
    # An unknown model of a known architecture, and an architecture of which no limits are known.
    for name, capability, arch in (("Some GPU", "8.6", "sm_86"), ("Next", "10.1", "sm_100")):
        found = gpu_of_facts(name, facts(capability, 60, 1500.0))
        assert (found.known, found.limits.arch) == ("", arch)
        assert f"scaled to {name}" in choose(GemmProblem(512, 512, 512), found, TABLE, precision="highest").reason
    with pytest.raises(UsageError, match=r"nothing is known about Old, compute capability 3\.5"):
        gpu_of_facts("Old", facts("3.5", 1, 1.0))
