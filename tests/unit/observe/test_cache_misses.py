"""Kernels with simulated caches: the same results, and the misses that arithmetic says."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from gemmlab.cli.app import build_app
from gemmlab.core.errors import UsageError
from gemmlab.core.hardware import cpu_info
from gemmlab.core.records import from_json, load_record, to_json
from gemmlab.devices.cpu import CpuDevice
from gemmlab.devices.probed_cpu import ProbedCpu
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.observe.cache_misses import CacheCounts, Counts, host_caches, simulate
from gemmlab.observe.cache_record import cache_rows, run_cache
from gemmlab.observe.packing_time import time_packing
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.probes.cachesim import PAGE, REFERENCE, CacheProbe, Caches, Level
from gemmlab.probes.stopwatch import PackingClock
from gemmlab.verify.check import check_kernel

OP = GemmOp()
N = 96
"""Rows of 384 bytes: six whole lines."""


def fully_associative(lines: int) -> Caches:
    return Caches(Level(64 * lines, lines), REFERENCE.l2)


def counts(kernel: str, caches: Caches, n: int = N, **config: int) -> CacheCounts:
    return simulate(find_kernel(kernel), OP, GemmProblem(n, n, n), caches, config)


def test_naive_misses_once_an_access_of_b_when_a_column_does_not_fit() -> None:
    # Between two uses of a line lie the 96 lines of a column of B, so only a line of A lives on, for 16 steps.
    found = counts("naive_ijk", fully_associative(64))
    assert found.total.accesses == 2 * N**3 + N**2
    assert found.total.bytes == 4 * found.total.accesses
    assert found.total.l1_misses == N**3 + N**2 * (N // 16) + N**2
    assert found.multiply_adds == N**3
    assert found.packing is None


def test_naive_misses_a_sixteenth_of_that_when_a_column_fits() -> None:
    # 96 lines of B, 6 of A and 1 of C: a column's lines serve 16 columns before B's next ones push them out.
    found = counts("naive_ijk", fully_associative(128))
    assert found.total.l1_misses == N * (N * N // 16) + N * 12


def test_exchanged_loops_miss_a_sixteenth_of_the_accesses_of_b() -> None:
    found = counts("loop_reorder_ikj", fully_associative(32))
    assert found.total.accesses == N**2 + 3 * N**3 + N**2
    assert found.total.l1_misses == N**3 // 16 + N * 12


@pytest.mark.parametrize("kernel", ["naive_ijk", "loop_reorder_ikj", "blas_naive", "cache_block"])
def test_large_caches_fetch_each_line_and_page_once(kernel: str) -> None:
    large = Caches(Level(1 << 20, 16), Level(4 << 20, 16), Level(1024 * PAGE, 8, PAGE))
    found = counts(kernel, large, 64).total
    assert found.l1_misses == found.l2_misses == 3 * 64 * 64 // 16
    assert found.tlb_misses == 3 * 64 * 64 * 4 // PAGE
    assert found.l1_written_back == 0
    assert (found.l2_bytes, found.memory_bytes) == (64 * found.l1_misses, 64 * found.l2_misses)


def test_blocks_that_fit_are_read_from_memory_once() -> None:
    # B, 96 x 96, does not fit 16 KiB: row after row it comes again; a block of 32 x 32 stays.
    small = Caches(Level(2048, 32), Level(16 << 10, 256))
    rows = counts("loop_reorder_ikj", small).total
    blocks = counts("cache_block", small, MC=96, KC=32, NC=32).total
    assert rows.l2_misses > N**3 // 16
    assert blocks.l2_misses < rows.l2_misses / 4


def test_packing_is_counted_apart() -> None:
    n = 64
    found = counts("packed", REFERENCE, n)
    assert found.packing is not None
    # Every element of A and of B is loaded once and stored once; a panel has no padding when its rows are all there.
    assert found.packing.bytes == 2 * 2 * 4 * n * n
    assert found.total.bytes > found.packing.bytes
    assert 0 < found.packing.l2_misses <= found.total.l2_misses


@pytest.mark.slow
def test_packing_in_tiles_is_counted_by_its_stores() -> None:
    n = 128
    found = counts("microkernel", REFERENCE, n)
    assert found.packing is not None
    assert 0 < found.packing.bytes <= 2 * 2 * 4 * n * n
    # A tile of 4 x 4 loads half a float for each multiply-add, and every whole tile there is is larger.
    assert found.total.bytes < 4 * n**3 / 2


def test_the_same_counts_every_time() -> None:
    assert counts("packed", REFERENCE, 50) == counts("packed", REFERENCE, 50)


@pytest.mark.slow
@pytest.mark.parametrize("probe", [CacheProbe(REFERENCE), PackingClock()], ids=["caches", "clock"])
@pytest.mark.parametrize("kernel", ["loop_reorder_ikj", "packed", "microkernel"])
def test_probed_kernels_still_compute_what_they_should(kernel: str, probe: CacheProbe | PackingClock) -> None:
    rung = find_kernel(kernel)
    cases = [
        shape.with_layout(layout)
        for shape in (
            GemmProblem(37, 53, 29, alpha=0.5, beta=2.0),
            GemmProblem(5, 70, 140, ldc=75),
            GemmProblem(0, 3, 2),
        )
        for layout in rung.layouts
    ]
    report = check_kernel(rung, ProbedCpu(probe), OP, cases=cases)
    assert report.passed, report.explain()


@pytest.mark.slow
def test_a_probed_worker_pool_does_no_harm() -> None:
    program = """
import gc
import numpy as np
from gemmlab.probes.cachesim import REFERENCE
from gemmlab.kernels.catalog import find_kernel
from gemmlab.observe.cache_misses import simulate
from gemmlab.ops.gemm import GemmOp, GemmProblem

found = simulate(find_kernel("threaded"), GemmOp(), GemmProblem(70, 80, 90), REFERENCE)
assert found.total.l2_misses > 0
gc.collect()
import gemmlab

a = np.ones((300, 400), np.float32)
for threads in (1, 2, 3):
    assert (gemmlab.gemm(a, a.T, threads=threads) == 400).all()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr


def test_packing_time() -> None:
    problem = GemmProblem(70, 100, 60)
    found = time_packing(find_kernel("packed"), OP, problem, {"LANES": 4}, repeats=3)
    assert found is not None
    assert found.calls == -(-100 // 4) + -(-70 // 4)
    assert 0.0 < found.packing_us < found.total_us
    assert found.share == found.packing_us / found.total_us
    assert time_packing(find_kernel("naive_ijk"), OP, problem, repeats=1) is None


def test_only_kernels_of_the_operation_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = find_kernel("packed")
    monkeypatch.setattr(type(OP), "name", "reduce")
    with pytest.raises(UsageError, match="packed is a kernel for gemm on cpu, not for reduce on cpu"):
        simulate(kernel, OP, GemmProblem(2, 2, 2), REFERENCE)


def test_nothing_to_multiply() -> None:
    found = simulate(find_kernel("naive_ijk"), OP, GemmProblem(0, 4, 4), REFERENCE)
    assert found.total == Counts()
    assert found.per_thousand(5) == 0.0


def test_the_host_caches_are_the_systems() -> None:
    info = cpu_info()
    caches = host_caches(info)
    assert (caches.l1.size, caches.l2.size) == (info.l1d_bytes, info.l2_bytes)


def test_a_record_holds_what_its_rows_show() -> None:
    shown: list[Any] = []
    kernels = [find_kernel("naive_ijk"), find_kernel("packed")]
    record = run_cache(kernels, OP, [GemmProblem(40, 40, 40)], REFERENCE, lambda *step: shown.append(step))
    assert shown == [("naive_ijk 40x40x40", 0, 2), ("packed 40x40x40", 1, 2)]
    assert from_json(json.loads(json.dumps(to_json(record)))) == record
    naive, packed = cache_rows(record)
    alone = simulate(kernels[0], OP, GemmProblem(40, 40, 40), REFERENCE)
    assert record.results[0].facts == {"total": asdict(alone.total)}
    assert naive.l1_misses == 1e3 * alone.total.l1_misses / 40**3
    assert naive.accessed_bytes == (2 + 1 / 40) * 4
    assert (naive.packing_bytes, naive.packing_l2_misses, naive.packing_time) == (None, None, None)
    assert packed.packing_bytes is not None
    assert packed.packing_time is not None
    assert 0 < packed.packing_bytes < 1
    assert 0 < packed.packing_time < 1


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["cache", *arguments])


@pytest.mark.in_turns(20)
def test_the_command_prints_a_table(tmp_path: Path) -> None:
    path = tmp_path / "cache.json"
    result = run("naive_ijk", "packed", "--sizes", "24,30x20x10", "--l1", "8K/8", "--l2", "64K/4", "--save", str(path))
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [line[0] for line in lines if line[:1] and line[0] in ("naive_ijk", "packed")] == ["naive_ijk", "packed"] * 2
    assert "L1 8 KiB in 8 ways, L2 64 KiB in 4 ways" in result.stdout
    record = load_record(path)
    assert record.device["caches"]["l2"] == {"size": 65536, "ways": 4, "line": 64}
    row = cache_rows(record)[0]
    assert f"{row.l1_misses:.2f}" in result.stdout


@pytest.mark.slow
def test_the_command_prints_json_of_the_ladder() -> None:
    result = run("--sizes", "32", "--json", "--l1", "48K/12", "--l2", "2M/16")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    runnable = [kernel.id for kernel in ladder("gemm", "cpu") if not kernel.unavailable()]
    assert [row["kernel"] for row in answer["rows"]] == runnable
    assert from_json(answer["record"]).device["caches"] == asdict(REFERENCE)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pakced"], "packed"),
        (["--sizes", "12x"], "12x"),
        (["--l1", "48K"], "48K/12"),
        (["--l2", "100/3"], "multiple"),
        (["--op", "sort"], "sort"),
        (["--save", "/nosuchfolder/x.json"], "nosuchfolder"),
    ],
)
def test_usage_errors(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert result.stdout == ""


def test_memory_starts_where_it_always_does() -> None:
    device = ProbedCpu(PackingClock())
    for nbytes in (1, 5000):
        buffer = device.allocate(nbytes)
        assert (buffer.nbytes, buffer.address % (2 << 20)) == (nbytes, 0)
        assert not buffer.array.any()
    assert device.target({}).startswith(CpuDevice().target({}))
    assert np.array_equal(device.state, [0, 0])
