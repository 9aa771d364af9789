"""`gemmlab compile`: what it makes, what it says of it, and how it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gemmlab.choices import explain_choice
from gemmlab.core import gpu
from gemmlab.core.errors import NoCompilerError
from gemmlab.devices.device import DeviceInfo
from gemmlab.devices.device_name import DeviceName
from gemmlab.kernels.by_name import named_kernel
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.precompile.cubins import jobs
from gemmlab.precompile.cubins import run as run_job
from gemmlab.timing.bench_plan import Plan
from gemmlab.timing.configurations import config_specs
from gemmlab.timing.peers import Spec
from gemmlab.timing.prebuild import of_library, of_plan, prebuild
from gemmlab.toolchain import nvrtc
from gemmlab.toolchain.build_cuda import build
from support.compile_command import answer, refused, run
from support.cuda_source import needs_compiler

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own, and its folder as the current one."""
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.in_turns(20)
def test_a_kernel_for_two_architectures() -> None:
    told = answer("naive", "--arch", "sm_80,sm_90a")
    assert told["compiler"] == nvrtc.compiler()
    assert [row["arch"] for row in told["kernels"]] == ["sm_80", "sm_90a"]
    for row in told["kernels"]:
        assert row["kernel"] == "naive"
        assert row["instance"].startswith("naive")
        assert row["config"] == find_kernel("naive").configure()
        assert row["registers"] > 8
        assert row["code_bytes"] % 128 == 0
        assert row["spill_stores"] == row["spill_loads"] == row["stack_bytes"] == 0
        assert not row["cached"]
    assert len({row["digest"] for row in told["kernels"]}) == 2


@pytest.mark.in_turns(20)
def test_what_it_made_serves_a_machine_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = answer("naive")["kernels"]
    assert answer("naive")["kernels"][0]["cached"]

    def missing() -> str:
        raise NoCompilerError("no CUDA compiler")

    monkeypatch.setattr(nvrtc, "compiler", missing)
    kernel = find_kernel("naive")
    (instance,) = kernel.instances(kernel.configure())
    assert build(kernel.program(instance, "sm_90")).digest == row["digest"]


def test_without_names_every_cuda_kernel_in_every_layout_it_reads() -> None:
    planned, skipped = jobs([], ["sm_90"], {})
    assert {job.kernel for job in planned} == {kernel.id for kernel in all_kernels() if kernel.device == "cuda"}
    assert skipped == []
    kernel = find_kernel("vector_load")
    layouts = [job.config for job in planned if job.kernel == "vector_load"]
    assert layouts == kernel.instances(kernel.configure())
    assert len(layouts) > 1


@pytest.mark.in_turns(20)
def test_a_configuration_of_ones_own_and_all_of_them() -> None:
    (row,) = answer("block_tile", "--config", "BM=16", "--config", "BN=32")["kernels"]
    assert (row["config"]["BM"], row["config"]["BN"]) == (16, 32)
    kernel = find_kernel("block_tile")
    everything, _ = jobs(["block_tile"], ["sm_90"], {}, every=True)
    assert [job.config for job in everything] == [i for c in kernel.configurations() for i in kernel.instances(c)]
    (same,) = [job for job in everything if job.config == row["config"]]
    assert (run_job(same).digest, run_job(same).cached) == (row["digest"], True)


@pytest.mark.slow
def test_what_a_bench_will_run_is_compiled_before_its_workers_start() -> None:
    op, said = GemmOp(), list[str]()
    cuda = DeviceName("cuda", "0")
    specs = config_specs([named_kernel("naive")], cuda, "cold", [], "5")
    plan = Plan(op, op.parse_sizes("8,16"), [*specs, Spec("cublas", "cublas")], device=cuda, mode="cold")
    device: Any = SimpleNamespace(family="cuda", target=lambda _config: "sm_90")
    prebuild(of_plan(plan), device, said.append, compiled=True)
    assert len(said) == 5
    planned = [job for spec in specs for job in jobs(["naive"], ["sm_90"], spec.config)[0]]
    assert [run_job(job).cached for job in planned] == [True] * 5
    prebuild(of_plan(plan), SimpleNamespace(family="cpu"), said.append)
    assert len(said) == 5


def test_what_the_library_call_will_choose_is_compiled_too() -> None:
    op, h200 = GemmOp(), gpu.model("H200")
    facts = {"compute_capability": "9.0", "sms": h200.sms, "clock_khz": 1e3 * h200.boost_mhz,
             "memory_clock_khz": 3.2e6, "memory_bus_bits": 6144}  # fmt: skip
    info = DeviceInfo("cuda:0", "NVIDIA H200", facts)
    device: Any = SimpleNamespace(family="cuda", describe=lambda: info)
    problems = op.parse_sizes("1024:nt,35x700x2048")
    plan = Plan(op, problems, [Spec("gemmlab", "gemmlab")], device=DeviceName("cuda", "0"), mode="cold")
    found = list(of_library(plan, device))
    assert [instance.get("TRANS_B", 0) for _, instance in found] == [1, 0]
    for problem, (kernel, instance) in zip(problems, found, strict=True):
        shapes = [(problem.m, problem.k), (problem.n, problem.k) if problem.trans_b else (problem.k, problem.n)]
        choice = explain_choice(*shapes, trans_b=problem.trans_b, device="H200")
        assert (kernel.id, choice.config.items() <= instance.items()) == (choice.kernel, True)
    assert not list(of_library(replace(plan, contestants=[Spec("cublas", "cublas")]), device))
    assert not list(of_library(plan, cast("Any", SimpleNamespace(family="cpu"))))


def test_layouts_can_be_left_out() -> None:
    planned, _ = jobs(["vector_load"], ["sm_90"], {}, every=True, layouts=["nn"])
    assert [job.config for job in planned] == [
        {**config, "TRANS_A": 0, "TRANS_B": 0} for config in find_kernel("vector_load").configurations()
    ]


@pytest.mark.in_turns(20)
def test_the_table_has_a_line_for_each() -> None:
    result = run("naive", "block_tile")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == [
        "kernel", "configuration", "arch", "registers", "shared", "spills", "code", "ms", "cached",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[1:3]] == ["naive", "block_tile"]
    assert all(line.split()[-1] == "no" for line in lines[1:3])
    assert nvrtc.compiler() in lines[-1]
    assert [line.split()[-1] for line in run("naive").stdout.splitlines()[1:2]] == ["yes"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["naive", "--arch", "sm_91"], "--arch: no code for 'sm_91': NVRTC"),
        (["naive", "--arch", "sm_90,"], "--arch: no code for ''"),
        (["naiv"], "naive"),
        (["packed"], "packed is a kernel for cpu"),
        (["--config", "BM=16"], "--config: name the kernel"),
        (["naive", "--config", "QQ=1"], "QQ"),
        (["naive", "--config", "BM=one"], "BM=one"),
        (["naive", "--config", "BM=16", "--all-configs"], "--all-configs compiles every configuration"),
        (["naive", "--instance", "naive<8, 8>"], "--kernel: name the one .cu file"),
        (["--instance", "f<1>"], "--kernel: name the one .cu file"),
        (["naive", "--layouts", "nn,nm"], "no layout 'nm'"),
        (["naive", "--save", "nowhere/sweep.json"], "--save nowhere/sweep.json: no folder nowhere"),
        (["naive", "mine.cu", "--save", "sweep.json"], "--save holds only kernels of gemmlab, and mine.cu is a file"),
    ],
    ids=["architecture", "empty architecture", "name", "cpu kernel", "config alone", "unknown parameter", "no number",
         "config and all", "instance of a kernel shipped", "instance alone", "unknown layout", "no folder",
         "record of a file"],
)  # fmt: skip
def test_what_cannot_be_served_is_said(arguments: list[str], said: str) -> None:
    assert said in refused(*arguments)


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_package: str) -> None:
        return None

    nvrtc.compiler.cache_clear()
    nvrtc.architectures.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "_version", missing)
        assert "no CUDA compiler: pip install 'gemmlab[cuda13]'" in refused("naive")
    nvrtc.compiler.cache_clear()
