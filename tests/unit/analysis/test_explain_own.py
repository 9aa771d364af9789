"""What is told of kernels that no rung is like: each has one fault, in a line of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmlab.analysis.explanation import Explanation, explain
from gemmlab.analysis.issue_slots import peak_gflops
from gemmlab.analysis.store_steps import UNKNOWN, cure
from gemmlab.core.gpu import model
from gemmlab.kernels.user_kernel import user_kernel
from support.cuda_source import needs_compiler
from support.racing_kernel import RACE

HEADER = '/* gemmlab\ngrid = "ceil_div(N, 32), M"\nthreads = "32"\n*/\n'
SIGNATURE = "__global__ void mine(int M, int N, int K, const float *A, const float *B, float beta, float *C) {\n"
PLACE = "    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y;\n"
"""Line 7; what follows begins in line 8."""


def explained(folder: Path, body: str, sizes: str = "64", arch: str = "sm_90", gpu: str = "H200") -> Explanation:
    path = folder / "mine.cu"
    path.write_text(f"{HEADER}\n{SIGNATURE}{PLACE}{body}}}\n")
    return explain(user_kernel(path), arch, model(gpu), {}, sizes)


def told(explanation: Explanation, key: str) -> str:
    (text,) = [finding.text for finding in explanation.findings if finding.key == key]
    return text


@pytest.mark.in_turns(20)
@needs_compiler
def test_an_indexed_array_is_local_memory_and_no_spill(tmp_path: Path) -> None:
    found = explained(
        tmp_path,
        """    float sums[16] = {};
    #pragma unroll 1
    for (int k = 0; k < K; ++k)
        sums[(k + row) % 16] += A[row * K + k] * B[k * N + col];
    float sum = 0;
    for (int i = 0; i < 16; ++i) sum += sums[i];
    C[row * N + col] = sum;
""",
    )
    assert (found.subject.wrong, found.resources.spilled) == ((), False)
    assert "mine.cu:11: an array" in told(found, "local memory")
    assert "(64 bytes of stack)" in told(found, "local memory")


@pytest.mark.in_turns(20)
@needs_compiler
def test_atomics_are_told_with_their_line(tmp_path: Path) -> None:
    body = """    C[row * N + col] = 0;
    for (int k = 0; k < K; ++k)
        atomicAdd(&C[row * N + col], A[row * K + k] * B[k * N + col]);
"""
    found = explained(tmp_path, body)
    assert found.subject.wrong == ()
    # A and B take two requests to each atomic's one.
    assert "mine.cu:10: atomic operations take 3" in told(found, "atomics")


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(("arch", "gpu", "lanes"), [("sm_90", "H200", 64), ("sm_89", "L4", 2)])
def test_double_precision_is_found_and_claims_no_float_peak(tmp_path: Path, arch: str, gpu: str, lanes: int) -> None:
    body = """    double sum = 0;
    for (int k = 0; k < K; ++k) sum += (double)A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
"""
    found = explained(tmp_path, body, arch=arch, gpu=gpu)
    issue = found.issue
    assert (found.subject.wrong, issue is not None) == ((), True)
    assert issue is not None
    assert issue.arithmetic == "DFMA"
    # Each warp's 32 multiply-adds have a quarter of an SM's lanes, and two conversions to each of them.
    assert issue.work == pytest.approx(issue.count * 32 * 4 / lanes)
    assert issue.best_inside == pytest.approx(0.5 if lanes == 2 else 16 / 2 / 64)
    assert f"begins {lanes} such operations" in told(found, "double precision")
    assert not any("FMA peak" in line.replace("DFMA", "") for line in found.issue_words)


def test_peaks_of_double_precision() -> None:
    # NVIDIA's data sheets: 9.7 of A100's 19.5 TFLOP/s, 34 of H200's 67.
    assert peak_gflops("DFMA", model("A100")) == pytest.approx(9700, rel=0.01)
    assert peak_gflops("DFMA", model("H200")) == pytest.approx(33_500, rel=0.01)
    assert peak_gflops("DADD", model("L4")) == pytest.approx(model("L4").peak_gflops / 128)


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_bad_load_is_told_apart_from_a_good_one_in_its_line(tmp_path: Path) -> None:
    # Lanes walk down the rows of A, 64 floats apart, and read one element of B together.
    body = """    int down = col, across = row;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[down * K + k] * B[k * N + across];
    C[down * N + across] = sum;
"""
    found = explained(tmp_path, body)
    assert found.subject.wrong == ()
    assert "mine.cu:10: global loads take 32 sectors a request" in told(found, "uncoalesced loads")
    assert "side by side take 4," in told(found, "uncoalesced loads")
    assert "mine.cu:11: global stores take 32 sectors" in told(found, "uncoalesced stores")
    # What coalescing gains is not counted again for tiles: one request of 4 sectors or of a shared one is left of each.
    assert [finding.key for finding in found.findings][:2] == ["uncoalesced loads", "no reuse"]
    asked, stored = 64**3 // 32 * (4 + 1), 64 * 64 // 8
    assert found.facts["reuse_possible"] == pytest.approx(32 * (asked + stored) / (3 * 4 * 64 * 64))


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("pitch", "cure"),
    [
        (32, "Neighbouring lanes store 32 words apart. Pad rows so that 32 words become 33, or"),
        (2, "Neighbouring lanes store 2 words apart. Pad rows so that 2 words become 3, or"),
    ],
)
def test_even_rows_are_to_be_padded(tmp_path: Path, pitch: int, cure: str) -> None:
    body = f"""    __shared__ float tile[32][{pitch}];
    tile[threadIdx.x][0] = A[row * K + col];
    __syncwarp();
    C[row * N + col] = tile[31 - threadIdx.x][0];
"""
    (finding,) = (one for one in explained(tmp_path, body).findings if one.key == "store conflicts")
    assert finding.attempt.startswith(cure)


@pytest.mark.in_turns(20)
@needs_compiler
def test_odd_rows_name_the_runs_of_lanes_that_meet(tmp_path: Path) -> None:
    # Lanes 0 to 15 store down one column, lanes 16 to 31 down the next: 15 banks are those of both.
    body = """    __shared__ float tile[16][33];
    tile[threadIdx.x % 16][threadIdx.x / 16] = A[row * K + col];
    __syncwarp();
    C[row * N + col] = tile[threadIdx.x / 16][threadIdx.x % 16];
"""
    (finding,) = (one for one in explained(tmp_path, body).findings if one.key == "store conflicts")
    assert finding.attempt == (
        "Runs of 16 lanes meet in the same banks: 33 words from lane to lane, 1 word from run to run. "
        "Pad rows so that 33 words become 34, or change which lane stores what."
    )


@pytest.mark.parametrize(
    ("places", "width", "said"),
    [
        ([lane % 16 * 33 + lane // 16 for lane in range(32)], 4, "Pad rows so that 33 words become 34, or"),
        # A row of 33 pieces of 16 bytes, an odd number, four lanes down: the next four begin one piece on.
        ([lane % 4 * 33 * 4 + lane // 4 * 4 for lane in range(32)], 16, "Pad rows so that 132 words become 136, or"),
        # Every fourth lane begins a run 8 columns on: 4 of 8 runs meet whatever the length of a row is.
        ([lane % 4 * 33 + lane // 4 * 8 for lane in range(32)], 4, "No padding of rows parts them: change which"),
        # Lanes store to every fourth row first: the row is the shorter step.
        ([lane % 4 * 256 + lane // 4 * 64 for lane in range(16)], 4, "Pad rows so that 64 words become 65, or"),
    ],
)
def test_a_padding_is_named_only_if_it_helps(places: list[int], width: int, said: str) -> None:
    assert said in cure({lane: 4 * at for lane, at in enumerate(places)}, width)


@pytest.mark.parametrize(
    ("row", "widest", "said"),
    [
        (68, 4, "Pad rows so that 68 words become 70, or"),
        # A float4 of a row of 70 words would begin at an odd multiple of 8 bytes.
        (68, 8, "Pad rows so that 68 words become 70, or"),
        (68, 16, "No padding of rows that keeps accesses of 16 bytes aligned parts them: change which"),
        # Rows of 33 words have no float4 in them: that is in another array.
        (33, 16, "Pad rows so that 33 words become 34, or"),
    ],
)
def test_a_padding_keeps_the_rows_aligned_for_the_widest_access(row: int, widest: int, said: str) -> None:
    assert said in cure({lane: 4 * (lane % 16 * row + lane // 16) for lane in range(32)}, 4, widest)


@pytest.mark.parametrize("places", [[], [5], [*range(32)], [lane * lane for lane in range(32)]])
def test_lanes_without_conflicts_or_without_a_rule_have_no_cure(places: list[int]) -> None:
    assert cure({lane: 4 * at for lane, at in enumerate(places)}, 4) == UNKNOWN


@pytest.mark.in_turns(20)
@needs_compiler
def test_bank_conflicts_are_told_with_their_line(tmp_path: Path) -> None:
    body = """    __shared__ float tile[32][32];
    float sum = 0;
    for (int k = 0; k < K; ++k) {
        tile[threadIdx.x][k % 32] = A[row * K + k];
        __syncwarp();
        sum += tile[threadIdx.x][k % 32] * B[k * N + col];
        __syncwarp();
    }
    C[row * N + col] = sum;
"""
    found = explained(tmp_path, body)
    assert found.subject.wrong == ()
    assert "mine.cu:13: bank conflicts add 3100 %" in told(found, "load conflicts")
    assert "mine.cu:11: bank conflicts add 3100 %" in told(found, "store conflicts")
    order = [finding.key for finding in found.findings]
    assert order.index("load conflicts") < order.index("narrow shared loads")
    assert order.index("narrow global loads") > order.index("store conflicts")


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_hazard_names_the_line_that_calls_the_function_it_is_in(tmp_path: Path) -> None:
    path = tmp_path / "race.cu"
    load = "__device__ void put(float* to, float value)\n{\n    *to = value;\n}\n"
    text = RACE.replace("__global__", f"{load}__global__").replace("As[y][x] = row < M", "put(&As[y][x], row < M")
    text = text.replace("A[row * K + from + x] : 0.0f;", "A[row * K + from + x] : 0.0f);")
    path.write_text(text.replace("__syncthreads();  // FIRST", ""), encoding="utf-8")
    found = explain(user_kernel(path), "sm_90", model("H200"), {}, "64")
    call = 1 + text[: text.index("put(&As")].count("\n")
    assert any(f"called from race.cu:{call}" in hazard.explain() for hazard in found.subject.hazards)
