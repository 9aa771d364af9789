"""`out` in a mapped file: a second mapping of the same part is the same memory at another address."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import UsageError

N = 96


def mapped(path: Path, first: int = 0) -> np.memmap[tuple[int, int], np.dtype[np.float32]]:
    return np.memmap(path, np.float32, "r+", offset=first * 4 * N, shape=(N, N))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 3 N rows of N numbers."""
    np.random.default_rng(5).uniform(-1, 1, 3 * N * N).astype(np.float32).tofile(tmp_path / "x")
    return tmp_path / "x"


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_an_operand_is_not_written_over_through_another_mapping(path: Path, link: object) -> None:
    other = path
    if callable(link):
        other = path.parent / "other"
        link(path, other)
    a, out = mapped(path), mapped(other)
    before = a.tobytes()
    for left, right, name in ((a, np.asarray(a).copy(), "a"), (np.asarray(a).copy(), a, "b")):
        with pytest.raises(UsageError, match=f"out and {name} are mapped from the same part of"):
            gemmlab.gemm(left, right, out=out)
    with pytest.raises(UsageError, match="out and a are mapped"):
        gemmlab.gemm(a, a, out=mapped(other, 1))
    assert a.tobytes() == before


def test_other_parts_of_a_file_are_other_memory(path: Path) -> None:
    a, b, out = mapped(path), mapped(path, N), mapped(path, 2 * N)
    expected = gemmlab.gemm(np.array(a), np.array(b))
    assert np.array_equal(gemmlab.gemm(a, b, out=out), expected)


def test_c_may_be_the_result_by_another_mapping(path: Path) -> None:
    a, b, c, out = mapped(path), mapped(path, N), mapped(path, 2 * N), mapped(path, 2 * N)
    expected = gemmlab.gemm(np.array(a), np.array(b), c=np.array(c), beta=2.0)
    assert np.array_equal(gemmlab.gemm(a, b, c=c, beta=2.0, out=out), expected)
