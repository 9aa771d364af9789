"""The list of public kernels: facts that the verbs know, operations that load, rows and planted errors that belong to
it, and the count of a repository's kernels.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab.kernels.cuda_file.header import KEYS
from gemmlab.ops.op_file import load_operation
from public_kernel_errors import ALWAYS, ERRORS, planted, sentences, stored_outcomes
from public_kernels import (
    LIST,
    MOST_LINES,
    OPERATIONS,
    PAGE,
    kernels_in,
    key_of,
    miscounted,
    page,
    stated,
    stored_rows,
)

REPOSITORIES: list[dict[str, Any]] = tomllib.loads(LIST.read_text(encoding="utf-8"))["repository"]
KERNELS = [(repository, kernel) for repository in REPOSITORIES for kernel in repository["kernel"]]
FILES = sorted(OPERATIONS.glob("*.py"))


def test_kernels_are_named_once_with_facts_that_are_known() -> None:
    keys = [key_of(repository, kernel) for repository, kernel in KERNELS]
    assert len({*keys}) == len(keys)
    for repository, kernel in KERNELS:
        facts = {**repository["facts"], **kernel["facts"]}
        assert {*facts} <= {*KEYS}
        assert len(facts) <= MOST_LINES


def test_every_operation_is_used() -> None:
    used = {kernel["op"] for _, kernel in KERNELS if "op" in kernel}
    assert used | {"activations"} == {path.stem for path in FILES}


@pytest.mark.parametrize("path", [path for path in FILES if path.stem != "activations"], ids=lambda path: path.stem)
def test_references_have_bounds(path: Path) -> None:
    op = load_operation(path)
    cases = list(op.cases(("nn",), np.random.default_rng(0)))
    assert len(cases) >= 3
    for case in cases[:3]:
        expected = op.reference(case, op.fill(case, np.random.default_rng(1)))
        assert all(np.isfinite(one.bound).all() and (one.bound >= 0).all() for one in expected.values())


def test_rows_are_those_of_the_list() -> None:
    rows = stored_rows()
    assert {key: row.stated for key, row in rows.items()} == {
        key_of(repository, kernel): stated(repository, kernel) for repository, kernel in KERNELS
    }
    text = page(REPOSITORIES, [rows[key_of(repository, kernel)] for repository, kernel in KERNELS])
    assert text.count("\n| `") == len(rows)
    assert text in PAGE.read_text(encoding="utf-8")


def test_nine_of_ten_kernels_go_through() -> None:
    left_out = sum(len(left["kernels"]) for repository in REPOSITORIES for left in repository.get("left_out", ()))
    through = [row for row in stored_rows().values() if row.goes_through]
    assert len(through) >= 0.9 * (len(KERNELS) + left_out)


def test_every_kernel_that_passes_is_rejected_with_an_error_in_it() -> None:
    outcomes = stored_outcomes()
    wanted = {key: row.stated for key, row in stored_rows().items() if row.passes}
    assert {key: known["stated"] for key, known in outcomes.items()} == wanted
    for key, known in outcomes.items():
        assert {*known["rejected"]} <= {*ERRORS}
        assert any(known["rejected"].values()), key
    assert sentences([known["rejected"] for known in outcomes.values()]) in PAGE.read_text(encoding="utf-8")


TEXT = """
// __global__ void not_this(float* x);
__global__ void __launch_bounds__((BM * BN) / (TM * TN), 1)
    tiled(int M, const float* A) {
    A += blockIdx.y * M;
    __syncthreads();
    for (int k = 0; k < K; ++k) sum += A[k + 1];
}
template <int N>
__global__
__launch_bounds__(256, 2) void other(
    int lda) { /* __global__ */ }
"""


def test_kernels_are_counted_by_their_text() -> None:
    assert [*kernels_in(TEXT)] == ["tiled", "other"]


@pytest.mark.parametrize(
    ("listed", "left", "complaints"),
    [
        (["tiled", "other<3>"], [], []),
        (["tiled"], ["a/b.cu other"], []),
        (["tiled"], [], ["mine/it: a/b.cu other is neither listed nor left out"]),
        (["tiled", "other"], ["a/b.cu gone"], ["mine/it: a/b.cu gone is not there"]),
    ],
)
def test_a_kernel_that_is_not_listed_is_named(
    tmp_path: Path, listed: list[str], left: list[str], complaints: list[str]
) -> None:
    file = tmp_path / "mine+it" / "a" / "b.cu"
    file.parent.mkdir(parents=True)
    file.write_text(TEXT)
    kernels = [{"file": "a/b.cu", "facts": {"kernel": name}} for name in listed]
    repository = {"name": "mine/it", "kernel": kernels, "left_out": [{"kernels": left, "why": ""}]}
    assert miscounted(tmp_path, repository) == complaints


def test_errors_are_planted_where_they_have_a_place() -> None:
    made = planted(TEXT, {"kernel": "tiled<128>"})
    assert [*made] == ["barrier", "one step too many", "difference"]
    assert "__syncthreads" not in made["barrier"]
    assert "k <= K" in made["one step too many"]
    strided = planted(TEXT.replace("* M;", "* K + 3;"), {"kernel": "tiled"})
    assert {*ALWAYS} <= {*strided}
    assert "* (K + 16) + 3;" in strided["row stride"]
    twice = planted("__global__ void f(int K) { a = b * K + c * N + d;\n}", {})
    assert "b * (K + 16) + c * N + d" in twice["row stride"]
    assert "b * K + c * (N + 16) + d" in twice["last row stride"]
