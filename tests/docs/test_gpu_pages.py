"""The GPU's ladder page says what its records say, and each block is made of its record."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from blocks import gpu_bounds, gpu_code, gpu_counts, gpu_rungs, gpu_times, profiles
from blocks.counted import FMA, ISSUE, L1, Counted
from blocks.counted import counted as counted_in
from blocks.records import RESULTS, ROOT, load
from blocks.speeds import Speeds, below, rungs, square
from claims.evidence import CONFIG_COUNTS
from gemmlab.core.errors import RecordError
from gemmlab.core.records import Record, Result, Sample
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.observe.counting import Count, count_kernels
from gemmlab.observe.profile_reader import load_profiles
from gemmlab.ops.catalog import find_op
from gemmlab.precompile.sweep import FIGURES, SweepRow
from gemmlab.results.climb_rows import digits

PAGE = (ROOT / "docs" / "ladder-gpu.md").read_text(encoding="utf-8")
IDS = [kernel.id for kernel in rungs()]
AWAITED: dict[str, tuple[Callable[[], str], str]] = {
    "h200/configs*.json": (gpu_times.configs_block, "gemmlab bench ... --device cuda --configs all --save"),
    "compile-sweep.json": (gpu_code.sweep_block, "gemmlab compile --all-configs --arch sm_80,sm_89,sm_90 --save"),
    "h200/ncu.json": (profiles.profiles_block, "python makers/ncu_ladder.py profile"),
}


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_page_describes_the_rungs_in_order() -> None:
    assert [name for name in sections() if name in IDS] == [name for name in IDS if name in sections()]


@pytest.mark.parametrize("name", AWAITED)
def test_a_record_that_is_there_has_its_section(name: str) -> None:
    block, command = AWAITED[name]
    if not list(RESULTS.glob(name)):
        assert block() == ""
        pytest.skip(f"there is no benchmarks/results/{name} yet, and so no section: {command}")
    assert block().startswith("##")
    assert block() in PAGE


@pytest.mark.in_turns(20)
def test_the_pictures_show_the_record() -> None:
    record = load(gpu_times.TIMES)
    assert record is not None
    speeds = Speeds(record)
    by_size, ladder = ((RESULTS / "h200" / f"{name}.svg").read_text(encoding="utf-8") for name in gpu_times.PICTURES)
    for name in IDS:
        speed = speeds.rung(name, square(gpu_times.TOP))
        if speed is not None:
            assert f">{name}<" in by_size
            assert f">{digits(speed.tflops)} (" in ladder
    assert ">cublas<" in by_size


@pytest.mark.in_turns(20)
def test_a_rung_that_is_slower_than_the_one_below_is_explained() -> None:
    record = load(gpu_times.TIMES)
    assert record is not None
    speeds, size = Speeds(record), square(gpu_times.TOP)
    for upper in rungs()[1:]:
        lower = below(upper)
        if lower is None:
            continue
        mine, under = speeds.rung(upper.id, size), speeds.rung(lower.id, size)
        if mine is not None and under is not None and mine.to(under).value < 0.98:
            assert "*Why slower.*" in sections().get(upper.id, ""), (
                f"{upper.id} is slower than {lower.id}: say why from counters"
            )


@pytest.mark.in_turns(20)
def test_another_record_makes_another_table() -> None:
    record = load(gpu_times.TIMES)
    assert record is not None
    other = replace(record, results=tuple(replace(result, flops=result.flops // 2) for result in record.results))
    for table in (gpu_times.ladder_table, gpu_times.size_table):
        assert table(record) in PAGE
        assert table(other) not in PAGE


def test_what_was_counted_are_the_reference_configurations() -> None:
    record = load(gpu_counts.COUNTS)
    assert record is not None
    rows = gpu_counts.rung_counts(record)
    assert [name for name in rows if rows[name].config != dict(kernel(name).params)] == [], "run `make counts`"


@pytest.mark.slow
@pytest.mark.parametrize("name", [gpu_counts.COUNTS, CONFIG_COUNTS])
def test_what_was_counted_is_what_the_code_does(name: str) -> None:
    record = load(name)
    assert record is not None
    device, op, stale = open_device(str(record.device["id"])), find_op("gemm"), []
    for row in counted_in(record):
        one = find_kernel(row.kernel)
        built = device.build(one.program({**row.config, **dict.fromkeys(one.from_problem, 0)}, row.arch))
        if built.compiler != row.compiler:
            pytest.skip(f"{built.compiler} here, the counters are of {row.compiler}")
        if built.digest == row.code:
            continue
        # Line numbers are part of the code: with other comments it is another code that does the same.
        again = count_kernels(Count(op, device, [one], op.parse_sizes(row.size), config=row.config))
        (fresh,) = counted_in(again)
        if fresh.facts != row.facts or not fresh.right:
            stale.append((row.kernel, row.config))
    assert stale == [], "run `make counts`"


def kernel(name: str) -> Any:
    return next(one for one in rungs() if one.id == name)


def counted(**facts: float) -> Counted:
    opcodes = {"FFMA": 1000}
    config = {"BM": 64, "BN": 64, "BK": 8, "WM": 32, "WN": 64, "WNITER": 2, "TM": 8, "TN": 4}
    return Counted("one", "1x32x1000", config, 32_000, 1000, 32, {"instructions": 1000, **facts}, opcodes, {}, "sm_90",
                   right=True, compiler="", code="", resources={})  # fmt: skip


def test_an_sm_needs_a_cycle_for_128_multiply_adds_four_instructions_a_wavefront_and_four_sectors() -> None:
    assert counted().demand() == {FMA: 1000 / 128, ISSUE: 1000 / 128, L1: 0}
    assert counted(instructions=2000).bound_by == ISSUE
    assert counted(instructions=2000).peak_share == 0.5
    busy = counted(shared_load_wavefronts=500, global_load_requests=10, global_load_sectors=320)
    assert busy.demand()[L1] == pytest.approx(1000 * (500 + 80) / 32_000)
    assert counted(shared_load_wavefronts=500, global_load_requests=100, global_load_sectors=100).demand()[
        L1
    ] == pytest.approx(1000 * 600 / 32_000)
    assert busy.bound_by == L1


def test_a_thread_of_a_warp_tile_has_all_its_subtiles() -> None:
    assert gpu_bounds.thread_tile({"WM": 64, "WN": 64, "WNITER": 4, "TM": 8, "TN": 4}) == (8, 16)
    assert gpu_bounds.thread_tile({"WM": 64, "WN": 32, "WNITER": 2, "TM": 8, "TN": 4}) == (8, 8)
    assert gpu_bounds.thread_tile({"BM": 64, "BN": 64, "BK": 8, "TM": 8}) == (8, 1)
    assert gpu_bounds.thread_tile({"BM": 32, "BN": 32}) == (1, 1)
    assert gpu_bounds.thread_tile({"TS": 8, "TT": 4, "LS": 2, "BK": 16}) == (8, 4)


def test_the_rung_below_is_the_one_that_a_rung_comes_after() -> None:
    assert below(rungs()[0]) is None
    # A rung that begins a line comes after none.
    assert ["" if one is None else one.id for one in map(below, rungs())] == [rung.after for rung in rungs()]


def timed(contestant: str, config: dict[str, int], time_us: float, size: int) -> Result:
    samples = tuple(Sample(0, turn, time_us + turn, 1, 1, ()) for turn in range(3))
    return Result(
        contestant, {}, square(size), 2 * size**3, 1, {"role": "rung", "config": config}, samples, verified=True
    )


def test_configurations_are_a_line_each_with_the_best_of_a_size_in_bold() -> None:
    record = load(gpu_times.TIMES)
    assert record is not None
    name, results = IDS[0], []
    for width, (small, large) in {8: (10.0, 900.0), 16: (12.0, 700.0)}.items():
        config = {"BM": 32, "BN": width}
        results += [
            timed(f"kernel:{name}[BN={width}]", config, small, 256),
            timed(f"kernel:{name}[BN={width}]", config, large, 4096),
        ]
    table = gpu_times.config_tables(replace(record, results=tuple(results)))
    assert "| BN | 256³ | 4096³ |" in table
    assert "| 8 | **0.0110** | 0.901 |" in table
    assert "| 16 | 0.0130 | **0.701** |" in table
    assert "With BM 32, UNROLL 16." in table
    assert "best at 4096: 196 TFLOP/s with BM 32, BN 16" in table


def test_the_sweep_is_a_line_a_rung_and_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(registers: int, spills: int) -> SweepRow:
        values = (registers, spills, 0, 8192, 1024, 4000, 2, 64, "abc")
        return SweepRow(IDS[2], "sm_90", dict(kernel(IDS[2]).params), dict(zip(FIGURES, values, strict=True)))

    monkeypatch.setattr(gpu_code, "sweep", lambda: (row(32, 0), row(40, 8)))
    text = gpu_code.sweep_block()
    assert f"| [`{IDS[2]}`](#{IDS[2]}) | sm_90 | 2 | 32 to 40 | 8,192 | 2 | 64 | 4,000 | 1 |" in text
    said = gpu_rungs.rung_block(kernel(IDS[2]))
    assert (
        "warps 2, blocks 32, registers 2, smem 25. So 2 blocks, 64 of 64 warps, 100.0%; warps and registers bind."
        in said
    )


def test_profiles_stand_beside_the_emulators_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stall = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    launch: dict[str, Any] = {
        "contestant": f"kernel:{IDS[1]}", "size": square(512), "kernels": [IDS[1]], "facts": {},
        "counts": {"inst_executed": 1000.0, "memory_l1_wavefronts_shared": 7.0},
        "metrics": {
            "lts__t_sector_hit_rate.pct": 87.25, stall.format("selected"): 1.0, stall.format("long_scoreboard"): 2.5,
            stall.format("mio_throttle"): 0.25,
        },
        "emulated": {"totals": {"inst_executed": 1000.0, "memory_l1_wavefronts_shared": 8.0}},
        "disagreements": ["memory_l1_wavefronts_shared: 8 emulated, 7 by ncu"],
    }  # fmt: skip
    library = {**launch, "contestant": "cublas", "kernels": ["vendor_sgemm"], "size": square(512)}
    del library["emulated"], library["disagreements"]
    tensor_cores = {**library, "contestant": "cublas:tf32", "facts": {"precision": "tf32"}}
    record = {
        "schema": "gemmlab.ncu/1", "op": "gemm", "device": "a GPU", "arch": "sm_90", "profiler": "ncu",
        "time_utc": "2026-01-01", "launches": [tensor_cores, library, launch],
    }  # fmt: skip
    file = tmp_path / "ncu.json"
    file.write_text(json.dumps(record))
    monkeypatch.setattr(profiles, "_record", lambda: load_profiles(file))
    text = profiles.profiles_block()
    assert "### At 512³" in text
    assert "87.2%" in text
    assert "| 3.75 | long scoreboard 2.50, mio throttle 0.25 |" in text
    assert "1,000 |" in text
    assert "7.00 (emulated 8.00)" in text
    assert "cublas: vendor_sgemm." in text
    assert text.index(f"`{IDS[1]}`") < text.index("`cublas`")
    assert "cublas:tf32" not in text


def test_a_record_of_another_schema_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "h200").mkdir()
    (tmp_path / profiles.PROFILES).write_text('{"schema": "another/1"}')
    monkeypatch.setattr(profiles, "RESULTS", tmp_path)
    profiles._record.cache_clear()
    with pytest.raises(RecordError, match="another/1"):
        profiles._record()
    profiles._record.cache_clear()


def test_a_block_without_its_record_says_so() -> None:
    from blocks.records import from_record

    def block(record: Record) -> str:
        return record.op

    assert "no record benchmarks/results/no/such.json" in from_record("no/such.json", block)()
