"""Contestants as text, the environment and CPUs each gets, and the real libraries where they are installed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from gemmlab.core import cpu_facts
from gemmlab.core.errors import PeerError, UsageError
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.timing import peer_libraries, worker_setup
from gemmlab.timing.arena import Arena
from gemmlab.timing.bench import run_bench
from gemmlab.timing.bench_plan import Plan
from gemmlab.timing.contestants.cblas import BlasLibrary
from gemmlab.timing.coretype import best_core_type, require_core_types, with_best_core_type
from gemmlab.timing.families import Timing
from gemmlab.timing.peer_libraries import find_library
from gemmlab.timing.peers import (
    Spec,
    core_types,
    installed_peers,
    parse_contestant,
    parse_peers,
)
from gemmlab.timing.turns import Crew
from gemmlab.timing.worker_setup import worker_cpus, worker_environment

LIBRARIES = ("openblas", "mkl", "onednn")
QUICK = Timing(min_us=50, warm_us=10, timeout_s=60)


def _library(name: str) -> str:
    try:
        return find_library(name)
    except PeerError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("text", "kind", "core_type", "role"),
    [
        ("gemmlab", "gemmlab", None, "library call"),
        ("numpy", "numpy", None, "peer"),
        ("numpy:Haswell", "numpy", "Haswell", "peer"),
        ("numpy:best", "numpy", "best", "peer"),
    ],
)
def test_contestants(text: str, kind: str, core_type: str | None, role: str) -> None:
    spec = parse_contestant(text)
    assert (spec.name, spec.kind, spec.core_type, spec.role) == (text, kind, core_type, role)


@pytest.mark.parametrize(
    "text",
    ["", "blas", "numpy:", "numpy:a b", "numpy:$(x)", "mkl:AVX2", "kernel:", "kernel:nosuch", "=/x", "gemmlab=/x",
     "probe", "probe=/x", "kernel=/x", "1st=/x"],
)  # fmt: skip
def test_what_is_no_contestant(text: str) -> None:
    with pytest.raises(UsageError):
        parse_contestant(text)


def test_peers_are_a_list_and_ours_are_no_peers() -> None:
    assert [spec.name for spec in parse_peers("numpy, numpy:Zen")] == ["numpy", "numpy:Zen"]
    assert parse_peers("") == parse_peers("none") == []
    assert "numpy:best" in [spec.name for spec in parse_peers("installed")]
    with pytest.raises(UsageError, match="gemmlab is not a peer"):
        parse_peers("numpy,gemmlab")


def test_a_peer_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_libraries, "_wheel_path", lambda *_: None)
    monkeypatch.setattr(peer_libraries, "_openblas_path", lambda: None)
    for name, wheel in (("mkl", "mkl"), ("onednn", "onednn-cpu-gomp"), ("openblas", "scipy-openblas32")):
        with pytest.raises(PeerError, match=f"{name} is not installed here: pip install {wheel}"):
            parse_contestant(name)
    assert installed_peers() == ["numpy:best"]


def test_a_library_by_path(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_text("")
    spec = parse_contestant(f"mine={tmp_path / 'lib.so'}")
    assert (spec.name, spec.kind, spec.path) == ("mine", "library", str((tmp_path / "lib.so").resolve()))
    with pytest.raises(PeerError, match="mine: no library at"):
        parse_contestant(f"mine={tmp_path / 'other.so'}")


def test_the_environment_is_ours() -> None:
    base = {
        "PATH": "/bin", "OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_L2_SIZE": "1", "OMP_NUM_THREADS": "7",
        "KMP_AFFINITY": "x", "GOMP_SPINCOUNT": "0", "NVPL_X": "1", "MKL_CBWR": "COMPATIBLE",
    }  # fmt: skip
    plain = worker_environment(parse_contestant("numpy"), 2, base)
    assert plain["PATH"] == "/bin"
    assert {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "KMP_AFFINITY", "GOMP_SPINCOUNT", "NVPL_X", "MKL_CBWR"}.isdisjoint(
        plain
    )
    assert plain["OMP_NUM_THREADS"] == plain["OPENBLAS_NUM_THREADS"] == plain["MKL_NUM_THREADS"] == "2"
    assert worker_environment(parse_contestant("numpy:Zen"), 1, base)["OPENBLAS_CORETYPE"] == "Zen"
    assert worker_environment(Spec("mkl", "mkl"), 1, base)["MKL_INTERFACE_LAYER"] == "LP64"
    assert base["OPENBLAS_CORETYPE"] == "Prescott"


def test_cores_come_before_their_second_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(worker_setup, "_siblings", lambda cpu: cpu_facts.parse_cpu_list("0-1" if cpu < 2 else "2-3"))
    assert [worker_cpus(threads) for threads in (1, 2, 3, 4)] == [[0], [0, 2], [0, 2, 1], [0, 2, 1, 3]]
    with pytest.raises(UsageError, match="may use 4 CPUs"):
        worker_cpus(5)
    with pytest.raises(UsageError, match="at least 1"):
        worker_cpus(0)


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_a_library_computes_every_layout(name: str, layout: str) -> None:
    op = GemmOp()
    library = BlasLibrary(_library(name))
    problem = GemmProblem(
        5, 7, 3, alpha=0.5, beta=-2.0, lda=9, ldb=10, ldc=11, trans_a=layout[0] == "t", trans_b=layout[1] == "t"
    )
    inputs = op.fill(problem, np.random.default_rng(1))
    flat = {}
    for operand in op.operands(problem):
        padded = np.zeros((operand.rows, operand.ld), np.float32)
        padded[:, : operand.cols] = inputs[operand.name]
        flat[operand.name] = padded
    addresses = {name: int(array.ctypes.data) for name, array in flat.items()}
    library.prepare(op.scalars(problem), addresses)()
    expected = op.reference(problem, inputs)["c"]
    assert np.all(np.abs(flat["c"][:, :7] - expected.values) <= expected.bound)
    assert np.all(flat["c"][:, 7:] == 0)


@pytest.mark.parametrize("name", [*LIBRARIES, "numpy"])
def test_a_peer_is_timed_verified_and_described(name: str) -> None:
    if name != "numpy":
        _library(name)
    op = GemmOp()
    plan = Plan(op, op.parse_sizes("33,40x8x1"), parse_peers(name), rounds=2, processes=1, timing=QUICK, probe=False)
    record = run_bench(plan)
    assert record.notes == ()
    for result in record.results:
        assert result.verified is True
        assert len(result.samples) == 2
        assert all(sample.time_us > 0 for sample in result.samples)
        assert result.facts["threads"] == 1
        assert all(result.facts[key] for key in ("library", "version", "core_type", "thread_runtime"))


def test_intel_openmp_leaves_nothing_in_shared_memory_even_when_killed() -> None:
    spec = Spec("mkl", "mkl", path=_library("mkl"))
    op = GemmOp()
    problems = op.parse_sizes("16")
    with Arena(op, problems, seed=0) as arena, Crew(op, problems, arena, 1, QUICK) as crew:
        assert crew.join(spec)
        assert crew.prepare("mkl", 0)
        pid = crew.workers["mkl"].pid
        assert "Intel" in crew.facts["mkl"]["thread_runtime"]
        assert not list(Path("/dev/shm").glob(f"*_{pid}_*"))  # noqa: S108
        assert crew.turn("mkl", 0) is not None
        left = Path(f"/dev/shm/__KMP_REGISTERED_LIB_{pid}_{os.getuid()}")  # noqa: S108
        if left.parent.is_dir():
            left.touch()
    assert not left.exists()


@pytest.mark.in_turns(20)
def test_the_core_type_asked_for_is_the_one_used() -> None:
    if "Haswell" not in core_types():
        pytest.skip("this processor cannot execute OpenBLAS's Haswell kernels")
    _library("openblas")
    op = GemmOp()
    plan = Plan(op, op.parse_sizes("16"), parse_peers("openblas:Haswell"), rounds=1, processes=1, timing=QUICK,
                probe=False)  # fmt: skip
    assert run_bench(plan).results[0].facts["core_type"] == "Haswell"


@pytest.mark.slow
def test_a_core_type_that_openblas_replaces_is_refused_with_those_that_work() -> None:
    _library("openblas")
    op = GemmOp()
    plan = Plan(op, op.parse_sizes("16"), parse_peers("openblas:NOSUCH"), rounds=1, processes=1, timing=QUICK)
    with pytest.raises(UsageError, match="openblas does not take the core type 'NOSUCH', it runs as") as caught:
        run_bench(plan)
    offered = str(caught.value).rpartition("core types that work here: ")[2]
    working = [name for name in offered.split(", ") if name in core_types()]
    assert working or not core_types()
    require_core_types(
        parse_peers(",".join(["openblas", "openblas:best", *(f"openblas:{n.upper()}" for n in working)]))
    )


@pytest.mark.slow
def test_the_best_core_type_runs_here_and_keeps_the_name() -> None:
    _library("openblas")
    spec = with_best_core_type(parse_contestant("openblas:best"), 1)
    assert spec.name == "openblas:best"
    assert spec.core_type in (None, *core_types())
    assert best_core_type("openblas", 1) == spec.core_type
    plain = parse_contestant("openblas")
    assert with_best_core_type(plain, 1) is plain


@pytest.mark.in_turns(20)
def test_a_library_that_does_not_load_is_left_behind_by_name(tmp_path: Path) -> None:
    (tmp_path / "broken.so").write_text("not a library")
    op = GemmOp()
    plan = Plan(op, op.parse_sizes("16"), [parse_contestant(f"broken={tmp_path / 'broken.so'}"),
                parse_contestant("numpy")], rounds=1, processes=1, timing=QUICK, probe=False)  # fmt: skip
    record = run_bench(plan)
    assert [result.contestant for result in record.results if result.samples] == ["numpy"]
    assert "broken.so does not load" in record.notes[0]


def test_a_library_without_a_product_is_refused() -> None:
    for name in ("libm.so.6", "libm.dylib"):
        found = next((folder for folder in map(Path, ("/lib/x86_64-linux-gnu", "/lib64", "/usr/lib",
                      "/lib/aarch64-linux-gnu")) if (folder / name).is_file()), None)  # fmt: skip
        if found is not None:
            with pytest.raises(PeerError, match="exports none of cblas_sgemm"):
                BlasLibrary(str(found / name))
            return
    pytest.skip("no C mathematics library found to try")


def test_a_copy_under_another_name_is_a_peer_of_its_own(tmp_path: Path) -> None:
    original = Path(_library("openblas"))
    for file in original.parent.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path / file.name)
    spec = parse_contestant(f"copy={tmp_path / original.name}")
    op = GemmOp()
    plan = Plan(op, op.parse_sizes("16"), [spec], rounds=1, processes=1, timing=QUICK, probe=False)
    result = run_bench(plan).results[0]
    assert (result.contestant, result.facts["library"], result.verified) == ("copy", "OpenBLAS", True)
