"""The advice about kernels that ran on the emulator: what is found, and in which order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from string import Formatter

import pytest

from gemmlab.analysis.advice import ADVICE, Advice
from gemmlab.analysis.explanation import explain, words_of
from gemmlab.analysis.findings import find
from gemmlab.analysis.subject import machine
from gemmlab.core.architecture import runs
from gemmlab.core.expr import parse
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.kernels.user_kernel import user_kernel
from support.cuda_source import needs_compiler
from support.explained_rungs import RUNGS, explained


def keys(name: str, arch: str = "sm_90") -> list[str]:
    return [finding.key for finding in explained(name, arch).findings]


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("name", "wanted", "rung"),
    [
        ("naive_strided", "uncoalesced loads", "naive"),
        ("naive", "no reuse", "block_tile"),
        ("block_tile", "little work a load", "thread_tile_2d"),
        ("thread_tile_2d", "load conflicts", "conflict_free"),
        ("thread_tile_2d", "narrow global loads", "vector_load"),
        ("vector_load", "two barriers", "double_buffer"),
        ("conflict_free", "tiles through registers", "async_copy"),
        ("async_copy", "near the roof", "peak_simt"),
        ("wmma_tf32_pipelined", "copy conflicts", "mma_tf32_pipelined"),
        ("reduce_interleaved", "division", "reduce_strided_index"),
        ("reduce_strided_index", "load conflicts", "reduce_sequential"),
        ("reduce_sequential", "idle lanes", "reduce_first_add"),
        ("reduce_unrolled", "barriers of a tree", "reduce_shuffle"),
    ],
)
def test_a_rung_is_shown_what_the_next_ones_do(name: str, wanted: str, rung: str) -> None:
    found = {finding.key: finding for finding in explained(name).findings}
    assert wanted in found
    if rung in RUNGS:
        assert found[wanted].rung == rung


@pytest.mark.slow
@needs_compiler
def test_what_a_rung_has_cured_is_not_found_again() -> None:
    assert "uncoalesced loads" not in keys("naive")
    assert "no reuse" not in keys("block_tile")
    assert "load conflicts" not in keys("conflict_free")
    assert "two barriers" not in keys("double_buffer")
    assert "tiles through registers" not in keys("async_copy")
    assert "idle lanes" not in keys("reduce_grid_stride")
    assert "barriers of a tree" not in keys("reduce_grid_stride")


@needs_compiler
def test_a_size_smaller_than_a_tile_is_told_first() -> None:
    tiny = explained("block_tile", sizes="4x16x32")
    assert tiny.findings[0].key == "beyond the edges"
    # One tile of 32 x 32 x 32 is multiplied, and each of its 1024 threads may add one more in the epilogue.
    assert tiny.facts["useful_pct"] == pytest.approx(100 * 4 * 16 * 32 / 32**3, rel=0.05)
    assert explained("block_tile").facts["useful_pct"] > 99


@pytest.mark.in_turns(20)
@needs_compiler
def test_advice_on_multiply_adds_is_not_for_tensor_cores() -> None:
    told = explained("wmma_tf32_pipelined")
    # As where inputs are rounded by FFMAs in the loop.
    facts = {
        **told.facts,
        "loop_ffma": 64.0,
        "loop_lds": 19.0,
        "loop_words": 67.0,
        "useful_pct": 10.0,
        "issue_best_pct": 90.0,
    }
    words = words_of(told.subject, told.occupancy, ())
    found = {finding.key for finding in find(told.subject.kernel, ladder("gemm", "cuda"), facts, words)}
    assert not found & {"little work a load", "beyond the edges", "near the roof"}
    found = {
        finding.key for finding in find(told.subject.kernel, ladder("gemm", "cuda"), {**facts, "loop_hmma": 0.0}, words)
    }
    assert found >= {"little work a load", "beyond the edges", "near the roof"}


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
def test_the_costliest_comes_first_on_every_architecture(arch: str) -> None:
    found = explained("thread_tile_2d", arch).findings
    assert found[0].key == "load conflicts"
    assert [finding.weight for finding in found] == sorted((finding.weight for finding in found), reverse=True)
    loop = explained("thread_tile_2d", arch).loop
    assert loop is not None
    # 8 x 8 results and 8 steps of k; 8 + 8 floats a step in 128-bit loads.
    assert (loop.mix["FFMA"], loop.wide_shared) == (512, 32)


@needs_compiler
@pytest.mark.parametrize("row", ADVICE, ids=lambda row: row.key)
def test_advice_names_facts_and_rungs_that_exist(row: Advice) -> None:
    facts = explained("block_tile").facts
    parse(row.when).check_names(facts)
    parse(row.weight).check_names(facts)
    quoted = {name for _, name, _, _ in Formatter().parse(row.text) if name}
    assert quoted <= {*facts, *words_of(explained("block_tile").subject, explained("block_tile").occupancy, ())}
    assert all(rung in RUNGS for rung in row.rungs)


@pytest.mark.in_turns(20)
@needs_compiler
def test_advice_is_for_the_architecture() -> None:
    """cp.async needs sm_80, and so do the rungs that use it."""
    found = {arch: explained("vector_load", arch).findings for arch in ("sm_75", "sm_80")}
    told = {arch: [one.attempt for one in some if "cp.async" in one.attempt] for arch, some in found.items()}
    assert (len(told["sm_75"]), len(told["sm_80"])) == (0, 1)
    named = {one.rung for one in found["sm_75"] if one.rung}
    assert named
    assert all(runs(find_kernel(rung).arch, "sm_75") for rung in named)
    facts = {**explained("vector_load").facts, "occupancy_pct": 1.0, "issue_best_pct": 10.0}
    words = words_of(explained("vector_load").subject, explained("vector_load").occupancy, ())
    advice = [row for row in ADVICE if row.key == "tiles through registers"]
    rungs = ladder("gemm", "cuda")
    (one,) = find(None, rungs, {**facts, "arch": 80.0}, words, advice, arch="sm_80")
    assert one.rung == "async_copy"
    (one,) = find(None, rungs, {**facts, "arch": 80.0}, words, advice, arch="sm_75")
    assert one.rung == ""


BUFFERS = """
__global__ void buffers(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float As[2][16][16], Bs[2][16][16];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0.0f;
    int at = 0;
    As[0][y][x] = A[row * K + x];
    Bs[0][y][x] = B[y * N + col];
    __syncthreads();
    for (int k0 = 16; k0 <= K; k0 += 16) {
        float a = k0 < K ? A[row * K + k0 + x] : 0.0f, b = k0 < K ? B[(k0 + y) * N + col] : 0.0f;
        #pragma unroll
        for (int k = 0; k < 16; ++k) sum += As[at][y][k] * Bs[at][k][x];
        __syncthreads();
        at ^= TOGGLE;
        As[at][y][x] = a;
        Bs[at][y][x] = b;
        __syncthreads();
    }
    C[row * N + col] = sum;
}
"""


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_89", "sm_90"])
@pytest.mark.parametrize(("toggle", "key"), [("0", "two barriers"), ("1", "needless barrier")])
def test_two_buffers_are_not_advised_to_a_kernel_that_has_them(
    tmp_path: Path, arch: str, toggle: str, key: str
) -> None:
    path = tmp_path / "buffers.cu"
    path.write_text(BUFFERS.replace("TOGGLE", toggle))
    kernel = user_kernel(path, grid="N // 16, M // 16", threads="16, 16",
                         require=["M % 16 == 0", "N % 16 == 0", "K % 16 == 0", "K > 0"])  # fmt: skip
    found = explain(kernel, *machine(arch), {}, "64")
    assert not found.subject.wrong
    assert [one.key for one in found.findings if "barrier" in one.key] == [key]


def test_findings_are_ranked_and_point_upwards() -> None:
    rows = [
        Advice("low", "cost > 0", "cost", "{cost:.0f} of {what}", "try", ("naive", "thread_tile_2d")),
        Advice("high", "cost > 1", "2 * cost", "text", "try", ("wmma_tf32",)),
        Advice("unmet", "cost > 9", "99", "text", "try"),
        Advice("trifle", "cost > 0", "0", "text", "try"),
    ]
    found = find(find_kernel("block_tile"), ladder("gemm", "cuda"), {"cost": 3}, {"what": "it"}, rows)
    # `naive` lies below, `wmma_tf32` rounds its inputs.
    assert [(f.key, f.weight, f.rung) for f in found] == [("high", 6, ""), ("low", 3, "thread_tile_2d")]
    assert (found[1].text, found[1].figures) == ("3 of it", {"cost": 3})


def test_an_exercise_gets_no_advice_that_is_its_own_idea() -> None:
    rows = [
        Advice("own", "cost > 0", "cost", "text", "try", ("block_tile", "thread_tile_2d")),
        Advice("other", "cost > 0", "cost", "text", "try", ("block_tile", "vector_load")),
    ]
    kernel = replace(find_kernel("naive"), id="mine", after=None)
    assert {f.key: f.rung for f in find(kernel, ladder("gemm", "cuda"), {"cost": 3}, {}, rows)} == {
        "own": "block_tile", "other": "block_tile",
    }  # fmt: skip
    solved = replace(kernel, exercise="thread_tile_2d")
    # The rung that is named comes after the exercise's.
    (left,) = find(solved, ladder("gemm", "cuda"), {"cost": 3}, {}, rows)
    assert (left.key, left.rung) == ("other", "vector_load")
