"""Explanations of kernels that ran on the emulator: figures that follow from their tiles, and the advice."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from gemmlab.analysis.explanation import explain
from gemmlab.analysis.figures import figures, side_by_side
from gemmlab.analysis.occupancy import explain_occupancy
from gemmlab.analysis.subject import machine
from gemmlab.core.errors import UsageError
from gemmlab.core.gpu import limits, model
from gemmlab.core.records import load_record
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.results.summary import summarise
from support.cuda_source import needs_compiler
from support.explained_rungs import explained
from support.paths import RESULTS

RECORDED = RESULTS / "h200" / "climb-cuda.json"


def test_occupancy_shows_every_limit() -> None:
    report = explain_occupancy(limits("sm_90"), 127, 8192, 256)
    assert report.steps == (
        "warps: 256 threads a block / 32 = 8 warps a block; 64 warps an SM / 8 = 8 blocks",
        "blocks: an SM holds 32 at most",
        (
            "registers: 127 a thread x 32 threads = 4,064, in units of 256 rounded up to 4,096 registers a warp; "
            "16,384 registers a partition / 4,096 = 4 warps; 4 partitions x 4 = 16 warps / 8 warps a block = 2 blocks"
        ),
        (
            "shared memory: 8,192 B a block + 1,024 B reserved, in units of 128 B rounded up to 9,216 B; "
            "233,472 B an SM / 9,216 B = 25 blocks"
        ),
    )
    assert (report.binding, report.found.blocks, report.found.warps) == (("registers",), 2, 16)
    # 80 registers make 2560 a warp, 6 warps a partition, 24 in all, 3 blocks.
    assert (report.next_registers, report.next_smem) == (80, None)
    assert explain_occupancy(limits("sm_90"), 255, 0, 256).steps[2].endswith("= 8 warps / 8 warps a block = 1 block")


@pytest.mark.parametrize(
    ("arch", "registers", "smem", "threads", "blocks", "binding"),
    [
        # By the published limits and allocation units, on paper; published examples are in test_gpu_limits.py and
        # CUDA's own answer for every kernel in tests/gpu/test_gpu_occupancy.py.
        ("sm_80", 32, 0, 256, 8, ("warps", "registers")),
        ("sm_80", 128, 0, 256, 2, ("registers",)),
        ("sm_80", 64, 49152, 128, 3, ("shared memory",)),
        ("sm_89", 32, 0, 64, 24, ("warps", "blocks an SM")),
        ("sm_89", 40, 32768, 256, 3, ("shared memory",)),
        ("sm_90", 32, 0, 1024, 2, ("warps", "registers")),
        ("sm_90", 168, 0, 384, 1, ("registers",)),
        ("sm_90", 255, 0, 256, 1, ("registers",)),
        ("sm_90", 64, 100 * 1024, 128, 2, ("shared memory",)),
        ("sm_90", 16, 0, 32, 32, ("blocks an SM",)),
    ],
)
def test_known_occupancies(
    arch: str, registers: int, smem: int, threads: int, blocks: int, binding: tuple[str, ...]
) -> None:
    report = explain_occupancy(limits(arch), registers, smem, threads)
    assert (report.found.blocks, report.binding) == (blocks, binding)


def test_what_lets_one_more_block_fit_does_and_one_more_does_not() -> None:
    report = explain_occupancy(limits("sm_90"), 64, 100 * 1024, 128)
    assert report.next_smem is not None
    assert report.next_registers is None
    more = [explain_occupancy(limits("sm_90"), 64, report.next_smem + extra, 128).found.blocks for extra in (0, 1)]
    assert more == [3, 2]


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_roofline_of_tiles_in_shared_memory() -> None:
    # 32 x 32 tiles at 256: every block reads 256 x 32 floats of A and of B and writes 32 x 32, none of it twice.
    found = explained("block_tile").roofline
    levels = {level.name: level for level in found.levels}
    moved = 64 * 4 * (2 * 256 * 32 + 32 * 32)
    assert (levels["L2"].bytes_least, levels["L2"].bytes_most) == (moved, moved)
    assert levels["L2"].intensity_most == pytest.approx(2 * 256**3 / moved)
    assert levels["DRAM at 256x256x256"].bytes_least == 3 * 4 * 256**2
    # At 4096 the operands once, or 16^3 times what is read at 256; of each result a tile is written only once.
    large = levels["DRAM at 4096x4096x4096"]
    grown = 64 * 4 * (2 * 256 * 32 * 16**3 + 32 * 32 * 16**2)
    assert (large.bytes_least, large.bytes_most) == (3 * 4 * 4096**2, grown)
    again = levels["L2 at 4096x4096x4096"]
    assert (again.bytes_least, again.bytes_most) == (grown, grown)
    assert found.l2.name == again.name
    assert found.bound_by == "L1"
    assert found.bound_gflops == levels["L1"].gflops_most < found.peak_gflops == model("H200").peak_gflops


@needs_compiler
def test_naive_repeats_what_a_block_shares() -> None:
    # Each of K steps a warp asks for a sector of A and four of B; a block of 32 x 32 has use for 32 + 32 rows of K / 8.
    levels = {level.name: level for level in explained("naive").roofline.levels}
    stores = 256 * 256 // 8
    assert levels["L2"].bytes_most == 32 * (5 * 256 * 256 * 256 // 32 + stores)
    assert levels["L2"].bytes_least == 32 * (64 * 2 * 32 * 256 // 8 + stores)
    assert "L2 at 4096x4096x4096" in explained("naive").roofline.doubtful


@pytest.mark.slow
@needs_compiler
def test_accesses_add_up() -> None:
    for name in ("naive_strided", "vector_load", "async_copy"):
        found = explained(name)
        assert sum(row.share for row in found.accesses) == pytest.approx(1)
        for kind in ("shared_load", "global_load", "global_store"):
            rows = [row for row in found.accesses if row.kind == kind.replace("_", " ")]
            assert sum(row.requests for row in rows) == found.facts[f"{kind}_requests"]
            assert sum(row.sectors for row in rows) == found.facts[f"{kind}_sectors"]
            assert sum(row.wavefronts for row in rows) == found.facts[f"{kind}_wavefronts"]
    (stores,) = [row for row in explained("naive_strided").accesses if row.kind == "global store"]
    assert (stores.sectors_per_request, stores.sectors_ideal, stores.excess) == (32, 8192, 65536 - 8192)


@pytest.mark.in_turns(20)
@needs_compiler
def test_groups_stay_together_side_by_side() -> None:
    rows = side_by_side(explained("naive"), explained("reduce_shuffle"))
    groups = [f.group for f, _ in rows]
    assert len(list(dict.fromkeys(groups))) == sum(one != two for one, two in pairwise(["", *groups]))


@pytest.mark.in_turns(20)
@needs_compiler
def test_two_side_by_side() -> None:
    one, two = explained("naive"), explained("async_copy")
    rows = side_by_side(one, two)
    assert {(f.group, f.name) for f, _ in rows} == {(f.group, f.name) for e in (one, two) for f in figures(e)}
    assert [f.text for f, _ in rows if f.text] == [f.text for f in figures(one)]
    json.dumps([one.to_json(), two.to_json()], allow_nan=False)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("name", ["naive", "block_tile", "vector_load"])
def test_no_recorded_speed_exceeds_the_bound(name: str) -> None:
    record = load_record(RECORDED)
    (result,) = [r for r in record.results if r.contestant == f"kernel:{name}" and r.label == "4096x4096x4096"]
    found = explained(name)
    (row,) = [r for r in summarise(record).rows if (r.contestant, r.label) == (result.contestant, result.label)]
    speed = result.flops / row.median_us / 1e3
    # The rung may have been recorded with other code of the same tiles and accesses, which make its bound; half of the
    # bound is what these three reach whatever else they wait for.
    assert found.roofline.bound_gflops / 2 < speed <= found.roofline.bound_gflops


def test_machines_and_architectures() -> None:
    assert [(arch, gpu.name) for arch, gpu in (machine(), machine("sm_80"), machine("", "L4"))] == [
        ("sm_90", "H200"), ("sm_80", "A100"), ("sm_89", "L4"),
    ]  # fmt: skip
    assert [machine("", gpu)[0] for gpu in ("RTX 3090", "A6000", "T4", "H100")] == ["sm_86", "sm_86", "sm_75", "sm_90"]
    assert machine("sm_80", "RTX 3090")[0] == "sm_80"
    assert machine("sm_80", "L4")[0] == "sm_80"
    for arch, gpu in (("sm_90", "A100"), ("sm_89", "A100"), ("sm_72", ""), ("", "V100"), ("", "GTX 1")):
        with pytest.raises(UsageError):
            machine(arch, gpu)


def test_bandwidths_of_caches() -> None:
    # NVIDIA: 5120 bytes a clock of A100's L2, 2048 of V100's; elsewhere no more than 64 bytes a clock and SM.
    assert model("A100").l2_gbs == pytest.approx(5120 * 1.41)
    assert model("V100").l2_gbs == pytest.approx(2048 * 1.53)
    assert model("L4").l2_gbs == pytest.approx(64 * 58 * 2.04)
    assert model("H200").l1_gbs == pytest.approx(128 * 132 * 1.98)


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_without_a_loop_is_explained_too(tmp_path: Path) -> None:
    path = tmp_path / "fill.cu"
    path.write_text(
        '/* gemmlab\ngrid = "1"\nthreads = "32"\nrequire = ["M == 4 and N == 8 and K == 1"]\n*/\n'
        "__global__ void fill(int M, int N, int K, const float *A, const float *B, float *C) {\n"
        "    C[threadIdx.x] = A[threadIdx.x / 8] * B[threadIdx.x % 8];\n}\n"
    )
    found = explain(user_kernel(path), "sm_90", model("H200"), {}, "4x8x1")
    assert (found.loop, found.issue, found.issue_words) == (None, None, ())
    assert found.subject.hazards == ()


def test_named_barriers_limit_the_blocks_of_an_sm() -> None:
    """CUDA's calculator says 4 blocks on an H200 for a warp with 16 barriers, as `by_tile` has; 32 with 2."""
    report = explain_occupancy(limits("sm_90"), 32, 0, 32, barriers=16)
    assert (report.found.blocks, report.binding) == (4, ("named barriers",))
    assert report.steps[-1] == "named barriers: 64 an SM / 16 a block = 4 blocks"
    assert explain_occupancy(limits("sm_90"), 32, 0, 32, barriers=2).found.blocks == 32
    assert explain_occupancy(limits("sm_80"), 32, 0, 32, barriers=16).found.blocks == 32
