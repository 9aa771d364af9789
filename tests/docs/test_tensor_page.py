"""The tensor cores' page says what its records say, and the records what the code does."""

from __future__ import annotations

import re
from dataclasses import asdict, replace

import numpy as np
import pytest

from blocks import parts, source_test, tensor, tensor_code, tensor_profiles
from blocks.records import ROOT, load
from blocks.speeds import Speeds, square
from blocks.tensor import TOP, rungs, version
from count_tensor_code import count_shapes, count_stages, is_integer, ptx_loop
from gemmlab.core.precision import TF32
from gemmlab.results.climb_rows import digits
from try_source_test import DATA, ROUNDED, WAYS, judged

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")
PAGE = (ROOT / "docs" / "ladder-tensor.md").read_text(encoding="utf-8")


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_page_describes_the_rungs_in_order() -> None:
    names = [kernel.id for kernel in (*rungs(), *parts.rungs())]
    assert [name for name in sections() if name in names] == [name for name in names if name in sections()]


def test_every_table_is_the_one_of_its_records() -> None:
    for module in (tensor, tensor_code, source_test, tensor_profiles, parts):
        for name, block in module.BLOCKS.items():
            if name.startswith("rung-") and name.removeprefix("rung-") not in sections():
                continue
            assert f"<!-- begin {name} -->\n\n{block()}\n" in PAGE, "run `make tables`"


def test_a_time_says_which_code_it_is_of() -> None:
    record = tensor.times_record()
    assert record is not None
    for kernel in rungs():
        speed = Speeds(record, TF32).rung(kernel.id, square(TOP))
        if speed is None:
            continue
        now = tensor._counts()[kernel.id]
        same = {"code_sha256": now.code, "compiler": now.compiler}
        assert version(kernel, replace(speed, facts=same, config=now.config)) == "this version"
        earlier = replace(speed, facts={**same, "code_sha256": "0"}, config=now.config)
        assert version(kernel, earlier) == "an earlier version"
        by_another = replace(
            earlier, facts={"code_sha256": "0", "compiler": "another"}, config={**now.config, "BK": 99}
        )
        assert version(kernel, by_another) == "other code, with `BK` 99 and compiled by another"


def test_sizes_get_a_table_once_several_were_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    record = load("h200/climb-cuda.json")
    assert record is not None
    at_top = [result for result in record.results if result.label == square(TOP)]
    half = [replace(result, label=square(TOP // 2), flops=result.flops // 8) for result in at_top]
    monkeypatch.setattr(tensor, "load", lambda _name: replace(record, results=tuple(at_top)))
    assert tensor.size_table() == ""
    monkeypatch.setattr(tensor, "load", lambda _name: replace(record, results=(*at_top, *half)))
    table = tensor.size_table()
    assert f"| {TOP // 2}³ | {TOP}³ |" in table
    speed = Speeds(record, TF32).rung("mma_tf32_pipelined", square(TOP))
    assert speed is not None
    assert re.search(rf"\| `mma_tf32_pipelined` \| {speed.tflops / 8:.1f} \(0.\d\d\) \| {speed.tflops:.0f} \(", table)


def test_stages_get_their_times_once_they_were_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    record = load("h200/climb-cuda.json")
    assert record is not None
    (timed,) = (r for r in record.results if r.contestant == "kernel:wmma_tf32_pipelined" and r.label == square(TOP))
    assert timed.facts["config"]["STAGES"] == 3
    monkeypatch.setattr(tensor_code, "load", lambda _name: None)
    assert f"ms at {TOP}" not in tensor_code.stages_block()
    monkeypatch.setattr(tensor_code, "load", lambda _name: replace(record, results=(timed,)))
    counted_by_three = next(
        line for line in tensor_code.stages_block().splitlines() if line.startswith("| 3 | counted")
    )
    speed = Speeds(record, TF32).rung("wmma_tf32_pipelined", square(TOP))
    assert speed is not None
    assert counted_by_three.endswith(f"| {digits(speed.time_us / 1e3)} |")


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(("stages", "modulo"), [(2, 1), (3, 1), (3, 0)])
def test_the_stages_were_counted_of_this_code(stages: int, modulo: int) -> None:
    (row,) = (row for row in tensor_code.stages() if (row.arch, row.stages, row.modulo) == ("sm_90", stages, modulo))
    fresh = count_stages("sm_90", {"STAGES": stages, "MODULO": modulo})
    if fresh.compiler != row.compiler:
        pytest.skip(f"{fresh.compiler} here, the record is of {row.compiler}")
    # The digest covers line numbers, which a comment moves.
    assert asdict(replace(fresh, code="")) == asdict(replace(row, code="")), "run `make counts`"
    assert (row.reciprocals > 0) == (stages == 3 and modulo == 1)


@pytest.mark.in_turns(20)
def test_the_shapes_are_those_of_this_code() -> None:
    for row in tensor_code.shapes():
        if row.arch == "sm_90":
            fresh = count_shapes(next(kernel for kernel in rungs() if kernel.id == row.kernel), row.arch)
            if fresh.compiler != row.compiler:
                pytest.skip(f"{fresh.compiler} here, the record is of {row.compiler}")
            assert fresh.loop == row.loop, "run `make counts`"


def test_whole_numbers_are_told_from_the_rest_in_the_loop_around_the_products() -> None:
    assert is_integer("mul.wide.u32 \t%rd12, %r13, -1431655765;")
    assert is_integer("@%p3 add.s32 \t%r1, %r2, 1;")
    assert is_integer("and.b32 \t%r1, %r2, 3;")
    for other in ("cvt.rna.tf32.f32 \t%r1, %f2;", "add.f32 \t%f1, %f2, %f3;", "mov.b32 \t%r1, %r2;", "bra \t$L__BB0_2;",
                  "cp.async.commit_group;", "ld.shared.u32 \t%r1, [%r2];"):  # fmt: skip
        assert not is_integer(other), other
    outer, inner = ["$L0:", "shl.b32 %r1, %r1, 1;"], ["$L1:", "wmma.mma.sync x;", "@%p1 bra \t$L1;"]
    after = ["$L2:", "add.s32 %r1, %r1, 1;", "@%p2 bra $L2;", "@%p3 bra $L0;"]
    assert ptx_loop("\n".join([*outer, *inner, *after])) == ["wmma.mma.sync x;", "@%p1 bra \t$L1;"]


def test_the_source_test_was_tried_on_these_ways() -> None:
    for data, (low, high) in DATA.items():
        rng = np.random.default_rng(0)
        a, b = (rng.uniform(low, high, (256, 256)).astype(np.float32) for _ in "ab")
        exact = a.astype(np.float64) @ b.astype(np.float64)
        rows = {row.way: row for row in source_test.tested() if (row.n, row.data) == (256, data)}
        for way, compute in WAYS.items():
            if way != "float32":  # the library's order of summation is its own
                assert judged(256, data, way, compute(a, b), exact).error == pytest.approx(rows[way].error, rel=1e-6)


def test_the_source_test_tells_neither_wrong_from_right_nor_right_from_wrong() -> None:
    passes = {(row.way, row.data, row.n): row.passes for row in source_test.tested()}
    assert passes["TF32, rounded", "0 to 1", 256]
    assert passes["TF32, rounded, last step of k left out", "0 to 1", 2048]
    assert passes["TF32, cut off", "0 to 1", 2048]
    assert not passes["float32", "-1 to 1", 256]


def test_rounding_is_to_the_nearest_and_ties_go_away_from_zero() -> None:
    unit = 2.0**-10
    values = np.array([1 + 0.49 * unit, 1 + 0.5 * unit, -(1 + 0.5 * unit), 1 + 0.51 * unit], np.float32)
    assert ROUNDED(values).tolist() == [1, 1 + unit, -(1 + unit), 1 + unit]
