from __future__ import annotations

import ctypes
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from gemmlab.cli import doctor_cmd
from gemmlab.cli.app import build_app
from gemmlab.core.errors import NoCompilerError
from gemmlab.timing import inventory
from gemmlab.toolchain import nvrtc


def test_the_quick_examination_is_json_with_every_section() -> None:
    result = CliRunner().invoke(build_app(), ["doctor", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert set(facts) == {
        "cpu", "blas", "gpu", "compilers", "cuda_compiler", "machine_code", "gpu_code", "tuned", "cache",
        "versions", "warnings",
    }  # fmt: skip
    assert facts["cpu"]["caches"][0]["level"] == 1
    assert facts["cpu"]["measured_peak_gflops"] == {}
    assert facts["versions"]["numpy"]
    assert facts["compilers"]["llvm"].count(".") == 2


def test_the_table_tells_what_was_found() -> None:
    result = CliRunner().invoke(build_app(), ["doctor", "--quick"])
    assert result.exit_code == 0, result.output
    for heading in (
        "processor",
        "vectors",
        "L1d",
        "L2",
        "computed peak",
        "GPU",
        "machine code",
        "GPU code",
        "compilers",
        "cache",
    ):
        assert f"\n{heading} " in "\n" + result.stdout


@pytest.mark.in_turns(20)
def test_every_blas_is_named_with_its_core_type(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in inventory.SLOWING_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    found, warnings = inventory.blas_libraries()
    assert found[0]["name"] == "numpy (this process)"
    assert {"numpy"} <= {item["name"] for item in found[1:]}
    assert all(item.get("library") and item.get("core_type") for item in found)
    assert warnings == []


def test_a_variable_that_slows_a_blas_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "131072")
    monkeypatch.setattr("gemmlab.timing.peers.installed_peers", lambda: ["mkl-nowhere"])
    _, warnings = inventory.blas_libraries()
    assert any("OPENBLAS_L2_SIZE=131072" in warning for warning in warnings)
    assert any("mkl-nowhere" in warning for warning in warnings)


def test_no_driver_means_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_load", lambda _name: None)
    gpu = inventory.gpus()
    assert gpu["devices"] == []
    assert dict(doctor_cmd.rows(_facts(gpu=gpu)))["GPU"] == "none (no CUDA driver library)"


def _set(pointer: Any, value: int) -> int:
    pointer._obj.value = value
    return 0


def test_gpus_are_described_by_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def name(buffer: ctypes.Array[ctypes.c_char], _length: int, _handle: object) -> int:
        buffer.value = b"NVIDIA H200"
        return 0

    library = SimpleNamespace(
        cuInit=lambda _flags: 0,
        cuDriverGetVersion=lambda out: _set(out, 13000),
        cuDeviceGetCount=lambda out: _set(out, 1),
        cuDeviceGet=_set,
        cuDeviceGetName=name,
        cuDeviceGetAttribute=lambda out, attribute, _handle: _set(out, {75: 9, 76: 0}[attribute]),
        cuDeviceTotalMem_v2=lambda out, _handle: _set(out, 139 << 30),
    )
    monkeypatch.setattr(inventory, "_load", lambda _name: library)
    gpu = inventory.gpus()
    assert gpu["driver_cuda"] == "13.0"
    text = dict(doctor_cmd.rows(_facts(gpu=gpu)))["GPU"]
    assert text == "NVIDIA H200 (sm_90, 142336 MiB); driver for CUDA 13.0"
    library.cuInit = lambda _flags: 100
    assert "error 100" in inventory.gpus()["reason"]


def test_the_cache_folder_says_whether_it_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache" / "deeper"
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(folder))
    monkeypatch.setenv("GEMMLAB_CACHE_LIMIT", "3M")
    assert inventory.cache_folder() == {
        "path": str(folder), "exists": False, "writable": True, "bytes": 0, "limit_bytes": 3_000_000,
    }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / f"{'0' * 64}.bin").write_bytes(b"12345")
    assert inventory.cache_folder()["bytes"] == 5
    assert "0.0 MB of 3 MB at most" in dict(doctor_cmd.rows(_facts()))["cache"]
    (folder / "code").write_bytes(b"foreign")
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(folder / "code" / "below"))
    assert not inventory.cache_folder()["writable"]


def test_a_package_that_is_not_installed_has_no_version() -> None:
    assert inventory.package_version("numpy")
    assert inventory.package_version("no-such-distribution-here") is None


@pytest.mark.in_turns(20)
def test_the_cuda_compiler_is_named_or_the_reason_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise NoCompilerError("no CUDA compiler: install one")

    monkeypatch.setattr(nvrtc, "compiler", missing)
    cuda = inventory.cuda_compiler()
    assert cuda == {
        "compiler": None,
        "architectures": [],
        "disassembler": None,
        "reason": "no CUDA compiler: install one",
    }
    assert dict(doctor_cmd.rows(_facts(cuda_compiler=cuda)))["CUDA compiler"] == "no CUDA compiler: install one"
    found = {"compiler": "NVRTC 13.5.37", "architectures": ["sm_75", "sm_80"], "disassembler": "/x", "reason": ""}
    told = dict(doctor_cmd.rows(_facts(cuda_compiler=found)))["CUDA compiler"]
    assert told == "NVRTC 13.5.37 for sm_75 to sm_80; disassembler /x"


def _facts(**changes: Any) -> dict[str, Any]:
    facts = doctor_cmd.examine(quick=True)
    return facts | changes


def test_peaks_and_warnings_are_shown() -> None:
    facts = _facts(warnings=["look out"])
    facts["cpu"] |= {"computed_peak_gflops": 80.0, "clock_ghz": 2.5, "fma_units": 2, "lanes": 8, "cpu_quota": 1.5}
    facts["cpu"] |= {"hypervisor": False}
    facts["cpu"]["measured_peak_gflops"] = {"1": 80.0, "2": 158.25}
    shown = dict(doctor_cmd.rows(facts))
    assert shown["computed peak"] == "80.0 GFLOP/s a core = 2.50 GHz x 2 units x 8 lanes x 2"
    assert shown["measured peak"] == (
        "80.0 GFLOP/s with 1 thread, 158.2 GFLOP/s with 2 threads; one core's implies 2.50 GHz if it has 2 units"
    )
    assert "limited to 1.5 CPUs' time" in shown["cores"]
    assert shown["warning"] == "look out"
    facts["cpu"] |= {"computed_peak_gflops": None, "measured_peak_gflops": {}, "measured_peak_error": "no device"}
    shown = dict(doctor_cmd.rows(facts))
    assert shown["computed peak"] == "unknown, because the clock is unknown: 32 operations a cycle and core (2 units)"
    assert shown["measured peak"] == "no device"


def test_the_clock_of_a_virtual_machine_is_not_taken_at_its_word() -> None:
    facts = _facts()
    facts["cpu"] |= {
        "hypervisor": True, "nominal_ghz": None, "max_ghz": None, "current_ghz": 2.7, "clock_ghz": 2.7, "fma_units": 2,
        "lanes": 16, "computed_peak_gflops": 172.8, "measured_peak_gflops": {"1": 240.0},
    }  # fmt: skip
    shown = dict(doctor_cmd.rows(facts))
    assert shown["clock"].startswith("3.75 GHz by the measured peak; the virtual machine reports 2.70 GHz")
    assert shown["computed peak"] == "unknown, because the clock is unknown: 64 operations a cycle and core (2 units)"
    facts["cpu"] |= {"measured_peak_gflops": {}}
    assert dict(doctor_cmd.rows(facts))["clock"].startswith("unknown; the virtual machine reports 2.70 GHz")
