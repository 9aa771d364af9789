"""Which kernel a GPU's product is given to: by the table of records, by the rule elsewhere, and what is said of it."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, DeviceError, RecordError, UsageError
from gemmlab.core.records import load_record
from gemmlab.dispatch.choice import choose, forced
from gemmlab.dispatch.choice_values import RECORD, RULE
from gemmlab.dispatch.measurements import FILE, Measurement, shipped_table, table_from_json
from gemmlab.dispatch.waves import PARTS, estimate, gpu_model, gpu_of_facts
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm_problem import LAYOUTS, GemmProblem
from support.paths import RESULTS

TABLE = shipped_table()
H200 = gpu_model("H200")
RECORDED = RESULTS / "h200"


def extents(label: str) -> tuple[int, int, int]:
    m, n, k = map(int, label.split("x"))
    return m, n, k


def model_us(entry: Measurement, label: str) -> float:
    size, _, parts = label.partition("/")
    return estimate(entry, GemmProblem(*extents(size)), H200, TABLE, parts=int(parts or 1)).us


def test_the_table_holds_what_the_records_do() -> None:
    """Medians of the records to a hundredth of a microsecond; of two records of one case their mean."""
    medians: dict[tuple[str, str, str], list[float]] = {}
    for name in ("gemm.json", "tf32.json", "configs.json", "configs-swizzle.json", "climb-cuda.json"):
        for result in load_record(RECORDED / name).results:
            if result.facts.get("role") == "rung" and result.samples:
                kernel = result.contestant.removeprefix("kernel:").partition("[")[0]
                whole = find_kernel(kernel).configure(result.facts["config"])  # parameters may be younger
                key = kernel, json.dumps(whole), result.label
                medians.setdefault(key, []).append(statistics.median(sample.time_us for sample in result.samples))
    assert len(TABLE.entries) >= 20
    for entry in TABLE.entries:
        for label, us in entry.times_us.items():
            recorded = medians.get((entry.kernel, json.dumps(dict(entry.config)), label), [0.0])
            assert us == pytest.approx(statistics.fmean(recorded), rel=1e-6, abs=0.006), (
                "makers/choices.py makes it anew"
            )


def test_the_table_s_kernels_are_those_of_the_catalog() -> None:
    for entry in TABLE.entries:
        kernel = find_kernel(entry.kernel)
        assert kernel.configure(entry.config) == dict(entry.config)
        assert (kernel.precision, kernel.layouts, kernel.arch) == (entry.precision, entry.layouts, entry.arch)
        alone = {**entry.config, PARTS: 1} if entry.parts else entry.config
        assert (kernel.grid, kernel.in_order(alone)) == (entry.grid, entry.in_order)


def test_the_rule_is_near_what_was_measured() -> None:
    """Three figures an entry, fitted to up to 34 sizes."""
    for entry in TABLE.entries:
        errors = [abs(math.log(model_us(entry, label) / us)) for label, us in entry.times_us.items()]
        assert statistics.fmean(errors) < 0.07, entry
        assert max(errors) < 0.35, entry


def test_the_rule_alone_would_have_chosen_well_at_every_size_measured() -> None:
    """What it chooses among what was timed at a size takes at most two percent longer than the best of it."""
    for label in {label for entry in TABLE.entries for label in entry.times_us}:
        timed = [e for e in TABLE.entries if label in e.times_us and e.precision == "float32"]
        chosen = min(timed, key=lambda entry: model_us(entry, label))
        assert chosen.times_us[label] <= 1.02 * min(entry.times_us[label] for entry in timed), label


@pytest.mark.parametrize(
    "label", ["512x512x512", "1024x1024x1024", "2048x2048x2048", "4096x4096x4096", "8192x8192x8192"]
)
def test_what_was_measured_at_a_size_decides_it(label: str) -> None:
    found = choose(GemmProblem(*extents(label)), H200, TABLE, precision="highest")
    assert found.basis == RECORD
    least = min(e.times_us.get(label, math.inf) for e in TABLE.entries if e.precision == "float32")
    assert found.considered[0].us == least
    assert f"measured at this size on H200, {TABLE.taken}" in found.reason
    # The same shape elsewhere, or laid out otherwise, was not measured.
    for problem, where in (
        (GemmProblem(*extents(label)).with_layout("nt"), H200),
        (GemmProblem(*extents(label)), gpu_model("H100")),
        (GemmProblem(*extents(label), ldb=extents(label)[1] + 1), H200),
    ):
        other = choose(problem, where, TABLE, precision="highest")
        assert other.basis == RULE
        assert not any(candidate.measured for candidate in other.considered)


SIZES = st.integers(0, 20_000)
MODELS = st.sampled_from(["H200", "A100", "L4", "RTX 4090", "T4"])


@given(SIZES, SIZES, SIZES, st.sampled_from(LAYOUTS), MODELS, st.sampled_from(["highest", "tf32"]))
@settings(max_examples=60, deadline=None)
def test_whatever_is_chosen_can_run_and_is_no_worse_than_asked(
    m: int, n: int, k: int, layout: str, model: str, precision: str
) -> None:
    where = gpu_model(model)
    found = choose(GemmProblem(m, n, k).with_layout(layout), where, TABLE, precision=precision)
    kernel = find_kernel(found.kernel)
    assert layout in kernel.layouts
    assert kernel.precision == "float32" or precision == "tf32"
    assert int(kernel.arch.removeprefix("sm_")) <= where.arch
    assert kernel.configure(found.config) == dict(found.config)
    times = [candidate.us for candidate in found.considered]
    assert times == sorted(times)
    assert all(candidate.resident >= 1 or not m * n for candidate in found.considered)


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000), MODELS)
@settings(max_examples=40, deadline=None)
def test_laws_of_the_rule(m: int, n: int, k: int, model: str) -> None:
    """More work never takes less time, and a tile over the edge takes as many rounds as a full one."""
    where = gpu_model(model)
    for entry in TABLE.entries[:6]:
        here = estimate(entry, GemmProblem(m, n, k), where, TABLE)
        assert here.us <= estimate(entry, GemmProblem(2 * m, n, k), where, TABLE).us
        assert here.us <= estimate(entry, GemmProblem(m, n, k + 1), where, TABLE).us
        if not here.resident:  # no block of the kernel fits that GPU
            assert here.us == float("inf")
            continue
        tile_m, tile_n = entry.config["BM"], entry.config["BN"]
        whole = estimate(entry, GemmProblem(-(-m // tile_m) * tile_m, -(-n // tile_n) * tile_n, k), where, TABLE)
        assert (here.blocks, here.rounds) == (whole.blocks, whole.rounds)
        assert here.us <= whole.us


def test_the_rule_by_hand() -> None:
    entry = Measurement(
        "naive", "float32", ("nn",), "sm_75", {"BM": 64, "BN": 32}, threads=256, registers=64, smem=0,
        grid=("ceil_div(M, BM) * ceil_div(N, BN)",), start_us=5.0, alone_us=0.1, share_us=0.04,
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
    with pytest.raises(UsageError, match=r"nothing is known of Old, compute capability 3\.5"):
        gpu_of_facts("Old", facts("3.5", 1, 1.0))


def test_precision_is_never_lower_than_asked() -> None:
    big = GemmProblem(4096, 4096, 4096)
    assert choose(big, H200, TABLE, precision="tf32").kernel == "mma_tf32_pipelined"
    found = choose(big, H200, TABLE, precision="highest")
    assert {candidate.precision for candidate in found.considered} == {"float32"}
    assert "tf32, less than asked for" in found.refused["mma_tf32_pipelined"]
    with pytest.raises(UsageError, match="precision is 'double'"):
        choose(big, H200, TABLE, precision="double")
    # Its two stages just fit an L4. Three would not.
    assert choose(big, gpu_model("L4"), TABLE, precision="tf32").kernel == "mma_tf32_pipelined"
    larger = [replace(one, smem=144 << 10) if one.kernel == "mma_tf32_pipelined" else one for one in TABLE.entries]
    small = choose(big, gpu_model("L4"), replace(TABLE, entries=tuple(larger)), precision="tf32")
    assert small.kernel.startswith("wmma_tf32")
    assert "registers or shared memory than L4 has" in small.refused["mma_tf32_pipelined"]


def test_where_nothing_can_run_it_is_said_why() -> None:
    with pytest.raises(UsageError, match=r"no kernel can compute 5x6x7 on V100: .*block_tile: needs sm_75"):
        choose(GemmProblem(5, 6, 7), gpu_model("V100"), TABLE, precision="highest")


def test_a_forced_configuration_of_the_chosen_kernel() -> None:
    problem = GemmProblem(4096, 4096, 4096)
    usual = choose(problem, H200, TABLE, precision="highest")
    found = forced(None, {"STAGES": 2}, problem, H200, TABLE, precision="highest")
    assert (found.kernel, dict(found.config), found.basis) == (usual.kernel, {**usual.config, "STAGES": 2}, "forced")


def test_tables_come_back_from_json_and_others_are_refused() -> None:
    data = json.loads(FILE.read_text(encoding="utf-8"))
    assert table_from_json(json.loads(json.dumps(TABLE.to_json()))) == TABLE
    for bad in (
        {**data, "schema": "gemmlab.choices/9"},
        {**data, "entries": [{"kernel": "naive"}]},
        {"schema": data["schema"]},
    ):
        with pytest.raises(RecordError, match="no table of choices"):
            table_from_json(bad)


def test_explain_choice_without_a_gpu() -> None:
    found = gemmlab.explain_choice((512, 512), (512, 512), device="H200")
    said = str(found)
    for part in (
        "512x512x512 (nn), precision 'highest' on H200", "by record", "us measured", "more that would take longer",
        "not mma_tf32_pipelined: computes in tf32", found.kernel,
    ):  # fmt: skip
        assert part in said
    assert found.to_json()["considered"][0]["kernel"] == found.kernel
    emulated = gemmlab.explain_choice((7, 100, 300), (300, 20), trans_a=False, device="emulated:sm_80")
    # Matrices by one are one tall matrix by it on a GPU; pairs of matrices are not.
    assert (emulated.where, emulated.basis, emulated.problem.split(" ")[0]) == ("A100", RULE, "700x20x300")
    assert gemmlab.explain_choice((7, 100, 300), (7, 300, 20), device="H200").problem.startswith("7*100x20x300 (nn)")
    assert "scaled to A100" in emulated.reason
    assert "(tn)" in gemmlab.explain_choice((300, 100), (300, 20), trans_a=True, device="H200").problem
    assert gemmlab.explain_choice((300,), (300,), device="H200").problem.startswith("1x1x300")
    assert gemmlab.explain_choice((0, 5), (5, 7), device="H200").considered[0].blocks == 0


def test_explain_choice_on_the_cpu() -> None:
    found = gemmlab.explain_choice((512, 512), (512, 512), device="cpu", precision="tf32")
    assert (found.kernel, found.where, found.considered) == ("threaded", "cpu", ())
    assert gemmlab.explain_choice((5, 5), (5, 5), device="cpu", kernel="packed").basis == "forced"


@pytest.mark.parametrize(
    ("arguments", "options", "error", "said"),
    [
        (((5, 6), (7, 8)), {}, UsageError, "do not fit"),
        (((5, 6), (6, 8)), {"device": "gpu"}, DeviceError, "no device 'gpu': cpu, cuda"),
        (((5, 6), (6, 8)), {"device": 5}, ArgumentTypeError, "device is 5; it is a name"),
        (((5, 6), (6, 8)), {"device": "emulated:sm_86"}, DeviceError, "no emulator for sm_86"),
        (((5, 6.5), (6, 8)), {}, ArgumentTypeError, "neither an array nor a shape"),
        (((5, -6), (6, 8)), {}, ArgumentTypeError, "neither an array nor a shape"),
        (("56", (6, 8)), {}, ArgumentTypeError, "a is builtins.str"),
        (((5, 6), (6, 8)), {"device": "H200", "kernel": "wmma_tf32"}, UsageError, "computes in tf32, and precision"),
        (((5, 6), (6, 8)), {"device": "cpu", "kernel": "naive"}, UsageError, "naive runs on a GPU"),
    ],
)
def test_errors_of_explain_choice(
    arguments: tuple[Any, Any], options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        gemmlab.explain_choice(*arguments, **{"device": "H200", **options})


def test_an_odd_gpu_is_chosen_for_all_the_same() -> None:
    tiny = replace(H200, name="tiny", sms=1, mhz=500.0, known="")
    found = choose(GemmProblem(64, 64, 64), tiny, TABLE, precision="highest")
    assert found.considered[0].rounds >= 1


def test_reproducible_takes_only_kernels_that_add_in_the_order_of_k() -> None:
    split = replace(
        TABLE.entries[0], kernel="naive", grid=("SPLITS",), parts=(1, 64), alone_us=0.01, share_us=0.01, times_us={},
    )  # fmt: skip
    table = replace(TABLE, entries=(split, *(replace(e, in_order=False) for e in TABLE.entries[1:])))
    problem = GemmProblem(64, 64, 65536)
    usual = choose(problem, H200, table, precision="highest")
    assert usual.config["SPLITS"] == 64
    assert usual.order not in ("", "k")
    assert usual.order == choose(problem, H200, table, precision="highest").order
    assert usual.order != choose(GemmProblem(64, 64, 65535), H200, table, precision="highest").order
    pinned = choose(problem, H200, table, precision="highest", reproducible=True)
    assert (pinned.kernel, pinned.config["SPLITS"], pinned.order) == ("naive", 1, "k")
    assert {one.kernel for one in pinned.considered} == {"naive"}
    assert "does not add in the order of k" in pinned.refused[TABLE.entries[1].kernel]
    with pytest.raises(UsageError, match=r"wmma_tf32.* computes in tf32"):
        forced("wmma_tf32", None, problem, H200, TABLE, "highest", True)
    with pytest.raises(UsageError, match="does not add in the order of k"):
        forced("wmma_tf32", None, problem, H200, TABLE, "tf32", True)
