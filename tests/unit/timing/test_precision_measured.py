"""Precisions in measuring: who is compared with whom, by which bound results are judged, how it is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.core.precision import FLOAT32, TF32
from gemmlab.core.records import Record, Result, Sample
from gemmlab.devices.device_name import DeviceName
from gemmlab.kernels.by_name import named_kernel
from gemmlab.kernels.catalog import all_kernels
from gemmlab.results.climb_rows import climb_rows, with_precision
from gemmlab.results.summary import FASTEST, summarise
from gemmlab.timing import peers
from gemmlab.timing.families import family_of
from gemmlab.timing.peers import (
    Spec,
    installed_peers,
    kernel_spec,
    parse_contestant,
    parse_peers,
)
from gemmlab.timing.worker_setup import worker_environment

CUDA = DeviceName("cuda")


@pytest.fixture
def everything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "peer_path", lambda name: None if name in ("torch", "cupy") else f"/lib/{name}.so")


def result(contestant: str, role: str, time_us: float, precision: str | None, **facts: Any) -> Result:
    samples = tuple(Sample(0, index, time_us, 1, 1, (time_us,)) for index in range(5))
    known = {"role": role, **facts} | ({} if precision is None else {"precision": precision})
    return Result(
        contestant=contestant, problem={}, label="64x64x64", flops=2 * 64**3, threads=1, facts=known, samples=samples,
        verified=True,
    )  # fmt: skip


def record() -> Record:
    results = (
        result("kernel:naive", "rung", 100.0, FLOAT32, name="naive", step=2),
        result("kernel:wmma_tf32", "rung", 10.0, TF32, name="wmma_tf32", step=16),
        result("cublas", "peer", 20.0, None, name="cublas"),
        result("torch", "peer", 25.0, FLOAT32, name="torch"),
        result("cublas:tf32", "peer", 5.0, TF32, name="cublas:tf32"),
        result("probe", "peak", 8.0, FLOAT32),
    )
    return Record("bench", "gemm", {}, {}, None, results, ())


def test_only_equals_are_compared() -> None:
    rows = {row.contestant: row for row in summarise(record()).rows}
    naive, wmma = rows["kernel:naive"], rows["kernel:wmma_tf32"]
    assert {name: round(ratio.value, 3) for name, ratio in naive.ratios.items()} == {
        "cublas": 0.2, "torch": 0.25, FASTEST: 0.2,
    }  # fmt: skip
    assert {name: round(ratio.value, 3) for name, ratio in wmma.ratios.items()} == {"cublas:tf32": 0.5, FASTEST: 0.5}
    assert (naive.fastest, wmma.fastest) == ("cublas", "cublas:tf32")
    # Tensor cores are not measured by the peak of FFMA.
    assert naive.peak_share == pytest.approx(0.08)
    assert wmma.peak_share is None
    assert rows["cublas:tf32"].peak_share is None


@pytest.mark.in_turns(20)
def test_a_climb_says_which_rungs_round() -> None:
    shown = {row.name: with_precision(row.name, row.precision) for row in climb_rows(record())}
    assert shown["naive"] == "naive"
    assert shown["wmma_tf32"] == "wmma_tf32 (tf32)"
    assert shown["cublas:tf32"] == "cublas:tf32"


@pytest.mark.usefixtures("everything_installed")
def test_peers_compute_in_the_precisions_of_the_kernels() -> None:
    assert installed_peers(CUDA) == ["cublas", "torch", "cupy"]
    assert installed_peers(CUDA, precisions=(TF32,)) == ["cublas:tf32", "torch:tf32"]
    assert installed_peers(CUDA, precisions={FLOAT32, TF32}) == [
        "cublas", "torch", "cupy", "cublas:tf32", "torch:tf32",
    ]  # fmt: skip
    assert family_of("cuda", "reduce").tf32_peers == family_of("cpu").tf32_peers == ()


@pytest.mark.usefixtures("everything_installed")
def test_a_peer_that_rounds_is_asked_for_by_name() -> None:
    spec = parse_contestant("cublas:tf32", CUDA, "cold")
    assert (spec.name, spec.kind, spec.path, spec.precision) == ("cublas:tf32", "cublas", "/lib/cublas.so", TF32)
    assert spec.to_json()["precision"] == TF32
    assert parse_contestant("cublas", CUDA).precision == FLOAT32
    for wrong in ("cupy:tf32", "cublas:bf16", "torch:"):
        with pytest.raises(UsageError, match="no contestant"):
            parse_contestant(wrong, CUDA)
    with pytest.raises(UsageError, match="no contestant"):
        parse_contestant("torch:tf32", CUDA, op="reduce")


@pytest.mark.usefixtures("everything_installed")
def test_what_is_only_quoted_is_timed_on_request_and_competes_with_none() -> None:
    assert [spec.name for spec in parse_peers("installed,cublaslt,torch", CUDA)] == [
        "cublas", "torch", "cupy", "cublaslt",
    ]  # fmt: skip
    spec = parse_contestant("cublaslt", CUDA, "cold")
    assert (spec.role, spec.path, spec.mode) == ("quoted", "/lib/cublaslt.so", "cold")
    results = (
        result("gemmlab", "library call", 10.0, FLOAT32), result("cublas", "peer", 20.0, FLOAT32),
        result("cublaslt", "quoted", 5.0, FLOAT32),
    )  # fmt: skip
    rows = {row.contestant: row for row in summarise(Record("bench", "gemm", {}, {}, None, results, ())).rows}
    assert rows["gemmlab"].fastest == "cublas"
    assert rows["gemmlab"].ratios.keys() == {"cublas", FASTEST}
    assert rows["cublaslt"].ratios == {}
    for other in (DeviceName("cpu"), DeviceName("emulated", "sm_90")):
        with pytest.raises(UsageError, match="no contestant 'cublaslt'"):
            parse_contestant("cublaslt", other)


def test_the_library_call_is_a_contestant_on_a_gpu_and_on_a_cpu_only() -> None:
    spec = parse_contestant("gemmlab", CUDA, "cold")
    assert (spec.role, spec.device, spec.mode) == ("library call", CUDA, "cold")
    rounds = parse_contestant("gemmlab:tf32", CUDA, "cold")
    assert (rounds.role, rounds.kind, rounds.precision) == ("library call", "gemmlab", TF32)
    for text, precision in (("gemmlab:reproducible", FLOAT32), ("gemmlab:tf32:reproducible", TF32)):
        same = parse_contestant(text, CUDA, "cold")
        assert (same.name, same.role, same.precision, same.reproducible) == (text, "library call", precision, True)
    with pytest.raises(UsageError, match="no contestant 'gemmlab:tf32'"):
        parse_contestant("gemmlab:tf32", CUDA, op="batch")
    assert parse_contestant("gemmlab").device == DeviceName("cpu")
    with pytest.raises(UsageError, match="no contestant 'gemmlab'"):
        parse_contestant("gemmlab", DeviceName("emulated", "sm_90"))
    assert parse_contestant("gemmlab", CUDA, op="sums").role == "library call"
    for op in ("reduce", "sums"):
        with pytest.raises(UsageError, match="no contestant 'cublaslt'"):
            parse_contestant("cublaslt", CUDA, op=op)


def test_libraries_round_only_where_they_were_asked_to() -> None:
    spec = Spec("cublas", "cublas", device=CUDA)
    given = {"NVIDIA_TF32_OVERRIDE": "1", "PATH": "/bin"}
    assert worker_environment(spec, 1, given)["NVIDIA_TF32_OVERRIDE"] == "0"
    rounding = worker_environment(replace(spec, precision=TF32), 1, given)
    assert "NVIDIA_TF32_OVERRIDE" not in rounding
    assert rounding["PATH"] == "/bin"


def test_a_kernel_brings_its_precision_along() -> None:
    assert kernel_spec(named_kernel("wmma_tf32"), CUDA).precision == TF32
    assert kernel_spec(named_kernel("naive"), CUDA).precision == FLOAT32
    named = {kernel.id for kernel in all_kernels() if kernel.precision == TF32}
    assert named >= {"wmma_tf32", "wmma_tf32_pipelined", "mma_tf32_pipelined"}
    assert all("TF32" in Path(k.path).read_text(encoding="utf-8") for k in all_kernels() if k.id in named)
