"""The list of public kernels: facts that the verbs know, operations that load, and rows that belong to it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemmlab.kernels.cuda_file.header import KEYS
from gemmlab.ops.op_file import load_operation
from public_kernels import LIST, MOST_LINES, OPERATIONS, key_of, page, stored_rows

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
    rows, keys = stored_rows(), [key_of(repository, kernel) for repository, kernel in KERNELS]
    assert {*rows} <= {*keys}
    text = page(REPOSITORIES, [rows[key] for key in keys if key in rows])
    assert text.count("\n| `") == len(rows)
