"""Sizes that no memory holds are refused before any is allocated."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.ops import footprint as memory
from gemmlab.ops.footprint import available_bytes, check_bytes, in_words, operand_bytes, require_memory
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.timing.bench import run_bench
from gemmlab.timing.bench_plan import Plan
from gemmlab.timing.peers import Spec
from gemmlab.verify.check import check_kernel
from gemmlab.verify.check_call import Call, check_callable
from support.fake_device import FakeDevice, make_kernel, right
from unit.verify.test_check_call import gemm

OP = GemmOp()
PLAIN = ("plain", "plain", "plain")


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("shape", [(300, 300, 300), (1500, 1500, 4), (4, 1500, 1500)])
def test_the_estimate_of_a_check_is_between_half_and_all_of_what_it_takes(shape: tuple[int, int, int]) -> None:
    device, problem = FakeDevice(), GemmProblem(*shape)
    kernel = make_kernel("good", device, right)

    def peak(check: Callable[[], object]) -> int:
        tracemalloc.start()
        check()
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return taken

    for taken in (
        peak(lambda: check_kernel(kernel, device, OP, cases=[problem])),
        peak(lambda: check_callable(gemm, calls=[Call(problem, PLAIN, "out")])),
    ):
        assert check_bytes(OP, problem) <= taken <= 2.1 * check_bytes(OP, problem)


def test_a_gap_between_rows_counts() -> None:
    assert operand_bytes(OP, GemmProblem(3, 5, 7, lda=10)) == 4 * (3 * 10 + 7 * 5 + 3 * 5)


def test_what_is_needed_and_what_is_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 3 << 20)
    require_memory(3 << 20, "it")
    with pytest.raises(MemoryError, match=r"^it needs at least 2.0 GiB; 3.0 MiB are available$"):
        require_memory(2 << 30, "it")


def test_this_machine_has_some() -> None:
    assert available_bytes() > 1 << 20
    assert in_words(1 << 20) == "1.0 MiB"


def test_a_bench_counts_the_reference_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 4 * operand_bytes(OP, GemmProblem(512, 512, 512)))
    plan = Plan(OP, OP.parse_sizes("512"), [Spec("numpy", "numpy")], rounds=1, processes=1, probe=False)
    with pytest.raises(MemoryError, match="verifying size 512x512x512 needs"):
        run_bench(plan)


@pytest.mark.parametrize(
    ("arguments", "extent"),
    [
        (("check", "--sizes", "8,1000000"), 1000000),
        (("check", "gemmlab.gemm", "--sizes", "2147483647"), 2147483647),
        (("bench", "--peers", "none", "--sizes", "8,1000000"), 1000000),
        (("climb", "--peers", "none", "--sizes", "1000000", "--threads", "1"), 1000000),
        (("cache", "naive_ijk", "--sizes", "1000000", "--l1", "32K/8", "--l2", "1M/16"), 1000000),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(value),
)
def test_every_verb_names_the_size_and_the_bytes(
    arguments: tuple[str, ...], extent: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(build_app(), list(arguments))
    assert result.exit_code == 2, result.output
    assert f"size {extent}x{extent}x{extent}" in result.stderr
    assert "gemmlab: not enough memory: " in result.stderr
    assert "GiB; " in result.stderr
    assert not result.stdout
