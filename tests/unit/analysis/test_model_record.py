"""The model against the recorded times of an H200: its error, the ladder's order, and that the record is today's."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest
from typer.testing import CliRunner

from gemmlab.analysis.model.constants import OF_H200
from gemmlab.analysis.model.kernel_study import Load, loads_of, study
from gemmlab.analysis.model.model_record import (
    CONFIGURATION,
    LADDER,
    Case,
    ModelRecord,
    grouped,
    inversions,
    load_model,
    median_error,
    rank_correlation,
    recorded_model,
    save_model,
)
from gemmlab.analysis.model.predict import Model
from gemmlab.analysis.model.quoted_prediction import modelled, quote, reliability
from gemmlab.cli.app import build_app
from gemmlab.core.errors import RecordError
from gemmlab.core.gpu import model
from gemmlab.core.records import Record, Result
from gemmlab.instruments.predicted_rows import predicted_rows
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.ops.catalog import find_op
from support.cuda_source import needs_compiler


def said(*arguments: str) -> str:
    """What the command line prints."""
    result = CliRunner().invoke(build_app(), list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def record() -> ModelRecord:
    found = recorded_model()
    assert found is not None
    return found


def case(kernel: str, measured: float, predicted: float, part: str = LADDER) -> Case:
    terms = {"waiting": predicted}
    return Case(
        kernel, "gemm", "64x64x64", "float32", {}, part, "0", same_code=True, measured_us=measured,
        predicted_us=predicted, terms=terms,
    )  # fmt: skip


def test_the_error_on_the_ladder_is_small() -> None:
    cases = record().of(LADDER, "gemm")
    rungs = grouped(cases, lambda one: one.kernel)
    assert set(rungs) <= {kernel.id for kernel in ladder("gemm", "cuda") if kernel.precision == "float32"}
    assert len(rungs) > 10
    assert all(len(mine) == 34 for mine in rungs.values())
    assert median_error(cases) < 0.08
    for name, mine in rungs.items():
        assert median_error(mine) < 0.15, name


def test_the_error_on_configurations_and_sums() -> None:
    assert len(record().of(CONFIGURATION, "gemm")) > 300
    assert median_error(record().of(CONFIGURATION, "gemm")) < 0.15
    assert median_error(record().of(LADDER, "reduce")) < 0.20


@pytest.mark.parametrize("n", [2048, 4096])
def test_the_order_of_the_ladder(n: int) -> None:
    cases = [one for one in record().of(LADDER, "gemm") if one.size == f"{n}x{n}x{n}"]
    assert len(cases) == len({one.kernel for one in cases}) > 10
    assert rank_correlation(cases) > 0.95
    assert len(inversions(cases)) <= 5
    for fast, slow in inversions(cases):
        # Whatever comes out in the wrong order lies close together.
        assert slow.measured_us < 1.15 * fast.measured_us, (fast.kernel, slow.kernel)


def test_the_record_has_the_constants_of_the_code() -> None:
    assert record().constants == {name: float(getattr(OF_H200, name)) for name in OF_H200.__slots__}


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("name", ["block_tile", "reduce_shuffle"])
def test_the_record_is_what_the_model_says_today(name: str) -> None:
    kernel = find_kernel(name)
    op, known = find_op(kernel.op), study(kernel, "sm_90")
    mine = [one for one in record().cases if one.kernel == name and one.code_sha256 == known.digest]
    if not mine:
        pytest.skip("another compiler's code")
    of = Model(known, model("H200"))
    for one in (mine[0], mine[-1]):
        (problem,) = op.parse_sizes(one.size)
        found = of.predict(loads_of(kernel, None, problem), op.bytes_moved(problem))
        assert found.time_us == pytest.approx(one.predicted_us, rel=1e-4)


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_block_is_followed_instruction_by_instruction() -> None:
    known = study(find_kernel("block_tile"), "sm_90")
    (shallow, one), (deep, two) = sorted(known.scripts.items())
    assert (shallow, deep, known.threads, known.smem_bytes) == (64, 128, 1024, 8192)
    # A warp has 32 results in a row. 64 more k are as many multiply-adds,
    ffma = [sum(script.code[at].pipe == "fma" for at, _ in script.warps[0]) for script in (one, two)]
    assert ffma[1] - ffma[0] == 64
    # words of Bs, a quarter of As by LDS.128 (two wavefronts for one address), and twice an LDG and STS for each tile.
    demands = Model(known, model("H200")).demands
    l1 = demands[deep]["shared memory and L1"] - demands[shallow]["shared memory and L1"]
    assert l1 == 32 * (64 + 2 * 64 // 4 + 2 * (2 + 2))


def test_launches_of_a_sum_follow_each_other() -> None:
    op, kernel = find_op("reduce"), find_kernel("reduce_first_add")
    (problem,) = op.parse_sizes("2^20")
    loads = loads_of(kernel, None, problem)
    assert loads == [Load(2048, 512.0), Load(4, 512.0), Load(1, 4.0)]


def test_ranks_and_pairs_in_the_wrong_order() -> None:
    right = [case("a", 1.0, 2.0), case("b", 2.0, 3.0), case("c", 3.0, 9.0)]
    assert rank_correlation(right) == 1
    assert inversions(right) == []
    wrong = [case("a", 1.0, 3.0), case("b", 2.0, 2.0), case("c", 3.0, 1.0)]
    assert rank_correlation(wrong) == -1
    assert [(one.kernel, two.kernel) for one, two in inversions(wrong)] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert median_error(right) == median([1.0, 0.5, 2.0])


def test_a_record_travels(tmp_path: Path) -> None:
    made = ModelRecord("H200", {"l2": 263.0}, (case("a", 1.0, 2.0), case("b", 3.0, 4.0)))
    save_model(made, tmp_path / "model.json")
    assert load_model(tmp_path / "model.json") == made
    (tmp_path / "model.json").write_text('{"schema": "gemmlab.model/1", "cases": 3}')
    with pytest.raises(RecordError, match=r"model\.json"):
        load_model(tmp_path / "model.json")


def test_what_is_said_of_the_error() -> None:
    known = ModelRecord("H200", {}, (case("a", 1.0, 1.1), case("b", 1.0, 0.5, CONFIGURATION)))
    told = "predictions were off by 10% in the median over 1 times of the ladder, by 50% over 1 of other configurations"
    assert reliability(known, "H200", "gemm", "float32") == told
    assert reliability(known, "L4", "gemm", "float32").startswith("extrapolated: compared with times of an H200 only")
    assert reliability(known, "H200", "reduce", "float32").startswith("never compared")
    assert "not recorded" in reliability(None, "H200", "gemm", "float32")


@pytest.mark.in_turns(20)
@needs_compiler
def test_other_gpus_are_extrapolated_and_slower_ones_slower() -> None:
    kernel = find_kernel("block_tile")
    here, there = (
        quote(modelled(kernel, arch, model(name), {}), kernel, {})
        for arch, name in (("sm_90", "H200"), ("sm_90", "H100 PCIe"))
    )
    assert there.prediction.time_us > here.prediction.time_us
    assert there.reliability.startswith("extrapolated")
    assert here.to_json()["binds"] == "shared memory and L1"


def counted(code: str, config: dict[str, int]) -> Record:
    facts = {"name": "block_tile", "config": config, "code_sha256": code}
    result = Result("kernel:block_tile", {}, "256x256x256", 0, 1, facts)
    return Record("count", "gemm", {}, {"facts": {"arch": "sm_90"}}, None, (result,))


def test_a_counted_ladder_shows_the_recorded_prediction_of_the_same_code() -> None:
    known = next(one for one in record().cases if one.kernel == "block_tile" and one.size == "4096x4096x4096")
    ((row,), notes) = predicted_rows(counted(known.code_sha256, {}), budget_s=-1.0)
    assert (row.time_us, row.speed, notes) == (known.predicted_us, 2 * 4096**3 / known.predicted_us / 1e3, [])
    assert (row.gpu, row.unit) == ("H200", "GFLOP/s")
    rows, notes = predicted_rows(counted("another", {}), budget_s=-1.0)
    assert rows == []
    assert "no time was left" in notes[0]


@pytest.mark.in_turns(20)
@needs_compiler
def test_explain_shows_the_predicted_time_and_its_parts() -> None:
    (told,) = json.loads(said("explain", "block_tile", "--json"))["kernels"]
    predicted = told["predicted"]
    assert (predicted["gpu"], predicted["size"], predicted["resident"]) == ("H200", "4096x4096x4096", 2)
    assert sum(predicted["terms"].values()) == pytest.approx(predicted["time_us"])
    assert predicted["speed"] == pytest.approx(2 * 4096**3 / predicted["time_us"] / 1e3)
    page = " ".join(said("explain", "block_tile", "--gpu", "L4").split())
    assert "block_tile: predicted for L4 at 4096x4096x4096, not measured" in page
    assert "extrapolated: compared with times of an H200 only" in page


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_that_cannot_be_predicted_says_why(tmp_path: Path) -> None:
    source = tmp_path / "small.cu"
    source.write_text(
        "/* gemmlab\nop = 'gemm'\ngrid = '1'\nthreads = '32'\nrequire = ['M == 8 and N == 8 and K == 8', "
        "'lda == K and ldb == N and ldc == N']\n*/\n"
        "__global__ void small(int M, int N, int K, float alpha, const float* A, int lda, const float* B, int ldb,\n"
        "                      float beta, float* C, int ldc)\n"
        "{\n    for (int i = threadIdx.x; i < 64; i += 32) {\n        float sum = 0.0f;\n"
        "        for (int k = 0; k < 8; ++k) sum += A[i / 8 * 8 + k] * B[k * 8 + i % 8];\n"
        "        C[i] = alpha * sum + (beta == 0.0f ? 0.0f : beta * C[i]);\n    }\n}\n"
    )
    assert "No time is predicted for small" in said("explain", str(source), "--sizes", "8")
