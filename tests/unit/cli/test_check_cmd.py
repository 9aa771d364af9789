from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import gemmlab
from gemmlab.cli.app import build_app
from gemmlab.core.errors import CompileError, DeviceError, UsageError
from gemmlab.devices.select import open_device
from gemmlab.instruments import defaults
from gemmlab.instruments.check_runs import LIBRARY
from support.cuda_source import needs_compiler
from support.fake_device import FakeDevice, Gemm, make_kernel, product, right, ship
from unit.verify.test_check_call import gemm

Run = Callable[..., Any]


def corner(call: Gemm) -> None:
    right(call)
    if call.c.size:
        call.c[0, 0] += 1


def no_code(_call: Gemm) -> None:
    raise CompileError("no_code: does not compile")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    device = FakeDevice()
    kernels = (
        make_kernel("good", device, right, ("nn", "tn")),
        make_kernel("parallel", device, right, threaded=True),
        make_kernel("bad", device, corner),
        make_kernel("no_code", device, no_code),
    )
    ship(monkeypatch, kernels)
    monkeypatch.setattr(defaults, "open_device", lambda *_: device)
    monkeypatch.setattr(gemmlab, "gemm", gemm, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    return lambda *arguments: CliRunner().invoke(build_app(), ["check", *arguments])


def test_a_right_kernel_ends_with_0_and_a_table(run: Run) -> None:
    result = run("good", "--sizes", "9,4x5x6")
    assert result.exit_code == 0, result.output
    assert "PASS" in result.stdout
    assert " 4 " in result.stdout  # two sizes in two layouts
    # Two columns are not known by name.
    assert "error/bound  the largest error of an element / what float32 allows it" in result.stdout
    assert "error/|c|/K  no verdict: the largest relative error / K" in result.stdout


def test_a_wrong_kernel_ends_with_1_and_the_first_wrong_element(run: Run) -> None:
    result = run("good", "bad", "--sizes", "33")
    assert result.exit_code == 1
    assert result.stdout.startswith("bad: WRONG: 1 of 1 cases, the first one 33x33x33")
    assert "bad (TILE=4) is wrong for 33x33x33" in result.stdout
    assert "c[0, 0] = " in result.stdout


def test_without_names_the_ladder_and_the_library_call_are_checked(run: Run) -> None:
    result = run("--sizes", "8", "--json", "--threads", "3")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["passed"] is False
    reports = {report["subject"]: report for report in data["reports"]}
    assert {name: report["passed"] for name, report in reports.items()} == {
        "bad": False, "good": True, "parallel": True, LIBRARY: True,
    }  # fmt: skip
    assert {name: report["threads"] for name, report in reports.items()} == {
        "bad": 1, "good": 1, "parallel": 3, LIBRARY: 3,
    }  # fmt: skip
    assert data["errors"] == {"no_code": "no_code: does not compile"}


def test_a_kernel_that_does_not_compile_is_an_error_of_its_own(run: Run) -> None:
    result = run("no_code", "good", "--sizes", "8")
    assert result.exit_code == CompileError.exit_code
    assert "ERROR" in result.stdout
    assert "does not compile" in result.stdout
    assert "PASS" in result.stdout


@pytest.mark.in_turns(20)
def test_the_whole_contract_is_the_default(run: Run) -> None:
    result = run("good", "--json", "--seed", "7")
    assert result.exit_code == 0
    (report,) = json.loads(result.stdout)["reports"]
    assert report["cases"] > 300
    assert report["seed"] == 7


def test_a_size_that_states_its_layout_and_padding_is_checked_as_it_is(run: Run) -> None:
    (report,) = json.loads(run("good", "--sizes", "8,9:tn:lda+4", "--json").stdout)["reports"]
    assert (report["cases"], report["padded"]) == (3, 1)


def test_a_broken_library_call_is_found(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(a: Any, b: Any, **options: Any) -> Any:
        result = gemm(a, b, **options)
        result[..., -1:, -1:] += 1
        return result

    monkeypatch.setattr(gemmlab, "gemm", wrong, raising=False)
    result = run(LIBRARY, "--sizes", "8")
    assert result.exit_code == 1
    assert "c[7, 7]" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["god"], "did you mean good"),
        (["good", "--sizes", "1x2"], "expected 3"),
        (["good", "--op", "sort"], "operations: gemm"),
        (["good", "--threads", "0"], "threads = 0: at least 1"),
        (["good", "--threads", "5"], "threads = 5: this process may use 4 CPUs"),
        (["good", "--config", "tile=4"], "NAME=VALUE"),
        (["good", "--config", "TILE=four"], "NAME=VALUE"),
        (["--config", "TILE=4"], "name the kernel"),
        ([LIBRARY, "--config", "TILE=4"], "no parameters"),
    ],
)
def test_bad_requests_end_with_2(run: Run, arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_an_unknown_parameter_is_reported(run: Run) -> None:
    result = run("good", "--config", "MR=4")
    assert result.exit_code == UsageError.exit_code
    assert "unknown parameter 'MR'" in result.output


def test_another_device_ends_with_3() -> None:
    result = CliRunner().invoke(build_app(), ["check", "--device", "cuda:999"])
    assert result.exit_code == 3
    assert "cuda" in result.output
    result = CliRunner().invoke(build_app(), ["check", "--device", "tpu"])
    assert result.exit_code == 3
    assert "no device named 'tpu'" in result.output


@pytest.mark.in_turns(20)
@needs_compiler
def test_without_a_gpu_an_own_file_is_checked_on_the_emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened = []

    def without_gpu(name: str, _mode: str | None = None) -> Any:
        opened.append(name)
        if name == "cuda":
            raise DeviceError("no GPU in this test")
        return open_device(name)

    monkeypatch.setattr(defaults, "open_device", without_gpu)
    file = str(tmp_path / "mine.cu")
    assert CliRunner().invoke(build_app(), ["new", file]).exit_code == 0
    result = CliRunner().invoke(build_app(), ["check", file, "--sizes", "5"])
    assert result.exit_code == 0, result.output
    assert result.stderr.strip() == "no GPU in this test; so this is run on emulated:sm_90"
    assert opened == ["cuda", "emulated"]
    # A named device is the one that is used.
    result = CliRunner().invoke(build_app(), ["check", file, "--sizes", "5", "--device", "cuda"])
    assert result.exit_code == 3
    assert "gemmlab: no GPU in this test" in result.stderr


def test_products_in_the_fake_skip_nothing() -> None:
    import numpy as np

    with np.errstate(invalid="ignore"):
        assert np.isnan(product(np.array([[np.inf]], np.float32), np.array([[0]], np.float32))).all()
