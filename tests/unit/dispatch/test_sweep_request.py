"""The trials and products that the command line of a sweep names."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from gemmlab.dispatch.measurements import shipped_table
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.gemm_problem import GemmProblem


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kernels", "naive"], "no products: give --sizes, --suite or --random"),
        (["--kernels", "nosuch", "--sizes", "8"], "nosuch"),
        (["--kernels", "packed", "--sizes", "8"], "packed is a cpu kernel for gemm, not a GPU's for gemm"),
        (["--kernels", "naive", "--sizes", "2*8", "--op", "batch"], "naive is a cuda kernel for gemm"),
        (["--kernels", "naive:BM", "--sizes", "8"], "write naive, naive:all, naive:20 or naive:BM=64,BN=32+64"),
        (["--kernels", "naive:XX=3", "--sizes", "8"], "XX"),
        (["--kernels", "naive:BM=8+", "--sizes", "8"], "naive:BM=64,BN=32+64"),
        (["--kernels", "naive if M <", "--sizes", "8"], "M <"),
        (["--kernels", "@/nowhere/at/all", "--sizes", "8"], "--kernels @/nowhere/at/all: No such file"),
        (["--kernels", "naive", "--random", "3"], "--random 3: write SEED:COUNT, as 3:100"),
        (["--kernels", "naive", "--family", "round"], "no family 'round'"),
        (["--kernels", "naive", "--sizes", "8", "--layouts", "nx"], "layout is 'nx'"),
    ],
)
def test_bad_requests_of_a_sweep(
    arguments: list[str], said: str, maker: Callable[[str], ModuleType], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "sweep.jsonl"
    assert maker("sweep_kernels").main([str(path), "--device", "emulated:sm_90", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not path.exists()


def test_kernels_of_a_sweep_by_name(maker: Callable[[str], ModuleType]) -> None:
    sweep = maker("sweep_kernels")
    assert [trial.config for trial in sweep.parsed_trials("naive")] == [find_kernel("naive").configure()]
    assert len(sweep.parsed_trials("vector_load:all")) == len(list(find_kernel("vector_load").configurations()))
    assert len(sweep.parsed_trials("vector_load:3")) == 3
    entries = shipped_table().entries
    assert len(sweep.parsed_trials("table")) == sum(len(entry.parts or (0,)) for entry in entries)
    for trial in sweep.parsed_trials("table"):
        find_kernel(trial.kernel).configure(trial.config)
    options = Namespace(op="gemm", sizes="8", suite=True, family="layouts", layouts=None, random=None)
    problems = sweep.wanted_problems(options)
    assert [problem.label for problem in problems[:2]] == ["8x8x8", "1024x1024x1024 nt"]


def test_random_products_of_a_sweep_are_those_of_regret(maker: Callable[[str], ModuleType]) -> None:
    sweep, draw = maker("sweep_kernels"), sys.modules["random_products"].draw
    options = Namespace(
        op="gemm", sizes="8", suite=False, family=None, layouts=None, random="5:20", most_steps=20, most_k=64
    )  # fmt: skip
    first, *problems = sweep.wanted_problems(options)
    assert first.label == "8x8x8"
    assert problems == draw(5, 20, most=2**20, deepest=64)
    assert max(p.k for p in problems) <= 64 < max(p.k for p in draw(5, 20, most=2**20))
    assert max(p.m * p.n * p.k for p in problems) <= 2**20


def test_several_values_of_a_parameter_are_a_trial_each(maker: Callable[[str], ModuleType]) -> None:
    trials = maker("sweep_kernels").parsed_trials("naive:BM=8+16,BN=8,UNROLL=1+4")
    assert [(one.config["BM"], one.config["UNROLL"]) for one in trials] == [(8, 1), (8, 4), (16, 1), (16, 4)]
    assert {one.config["BN"] for one in trials} == {8}


def test_kernels_in_a_file_each_with_the_products_it_is_for(maker: Callable[[str], ModuleType], tmp_path: Path) -> None:
    sweep, file = maker("sweep_kernels"), tmp_path / "which.txt"
    file.write_text("# a note\n\nnaive:BM=8+16 if M <= BM  # narrow\nblock_tile\n")
    trials = sweep.parsed_trials(f"@{file}")
    assert [(one.kernel, one.condition) for one in trials] == [("naive", "M <= BM")] * 2 + [("block_tile", "")]
    assert trials == sweep.parsed_trials(f"@{file}")
    for m, sensible in ((8, [True, True, True]), (9, [False, True, True]), (17, [False, False, True])):
        assert [sweep.is_sensible(GemmProblem(m, 5, 5), one) for one in trials] == sensible


@pytest.mark.parametrize(
    ("shape", "sensible"),
    [
        # One tile: 8 steps along k give no more than 8 parts, and few parts only where there are no more steps.
        ((32, 32, 256), {1: True, 2: False, 4: False, 5: True, 8: True, 16: False}),
        # Of 1024 steps, blocks enough to be worth a launch and not so many that they take turns.
        ((32, 32, 32768), {1: True, 32: False, 48: True, 256: True}),
        # A GPU is full without parts; 36 x 36 tiles are too many blocks already.
        ((32 * 36, 32 * 36, 32768), {1: True, 2: False}),
        ((32 * 8, 32 * 8, 32768), {1: True, 2: True, 16: True, 20: False}),
    ],
)
def test_sensible_numbers_of_parts(
    shape: tuple[int, int, int], sensible: dict[int, bool], maker: Callable[[str], ModuleType]
) -> None:
    sweep = maker("sweep_kernels")
    found = {
        parts: sweep.is_sensible(GemmProblem(*shape), *sweep.parsed_trials(f"split_k:BM=32,BN=32,TM=4,SPLITS={parts}"))
        for parts in sensible
    }
    assert found == sensible


def test_products_are_drawn_from_a_seed(maker: Callable[[str], ModuleType]) -> None:
    regret = maker("regret")
    problems = regret.draw(3, 400)
    assert problems == regret.draw(3, 400)
    assert problems[:50] == regret.draw(3, 50)
    assert problems != regret.draw(4, 400)
    assert len(set(problems)) == 400
    assert all(p.m * p.n * p.k <= 2**38 and min(p.m, p.n, p.k) >= 1 for p in problems)
    assert max(max(p.m, p.n, p.k) for p in problems) <= 16384
    assert {p.layout for p in problems} == {"nn", "nt", "tn", "tt"}
    # Log-uniform: half of the extents are below 128.
    assert 0.4 < sum(p.m < 128 for p in problems) / 400 < 0.6
    padded = [p for p in problems if p != p.with_layout(p.layout)]
    assert 0.35 < len(padded) / 400 < 0.6
