"""Pieces are whole chunks of the store that keeps the result, or long lines of a mapped file."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import gemmlab
from gemmlab.pieces import large_product
from support.amx_model import needs_tiles
from support.least_pieces import Stopped, in_two_runs, smallest, stop_at
from support.resumed_pieces import lines
from support.stores import Store


@pytest.mark.parametrize("order", ["C", "F"])
def test_pieces_of_a_mapped_result_have_long_lines(tmp_path: Path, order: Any) -> None:
    """Each piece is flushed, and with it the whole pages of its lines."""
    extent = 1500
    a = np.ones((extent, extent), np.float32)
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=a.shape, order=order)
    with pytest.raises(Stopped):
        gemmlab.gemm(a, a, out=out, memory_bytes=6 << 20, checkpoint=tmp_path / "journal", progress=stop_at(1))
    head = lines(tmp_path)[0]
    down, across = -(-extent // head["rows"]), -(-extent // head["cols"])
    cuts = across if order == "C" else down
    assert extent * cuts * mmap.PAGESIZE <= 4 * out.nbytes
    assert (head["rows"] < head["cols"]) == (order == "C")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    extents=st.tuples(st.integers(2, 420), st.integers(1, 300), st.integers(1, 90)),
    chunks=st.tuples(st.integers(1, 150), st.integers(1, 150)), at=st.integers(1, 4), turned=st.booleans(),
    factors=st.sampled_from([(1.0, 0.0), (-2.0, 0.25)]), reproducible=st.booleans(),
)  # fmt: skip
@example(extents=(420, 300, 90), chunks=(10, 6), at=2, turned=False, factors=(1.0, 0.0), reproducible=False)
def test_pieces_are_whole_chunks_of_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extents: tuple[int, int, int], chunks: tuple[int, int], at: int,
    *, turned: bool, factors: tuple[float, float], reproducible: bool,
) -> None:  # fmt: skip
    """Whatever multiples they have in common with a kernel's tile, they have the bits of one piece."""
    monkeypatch.setattr(large_product, "cut", smallest)
    m, n, k = extents
    rng = np.random.default_rng(m + n + k)
    a, b, c = (rng.random(shape, dtype=np.float32) for shape in ((m, k), (k, n), (m, n)))
    how: dict[str, Any] = {"a": a, "b": np.asfortranarray(b) if turned else b, "reproducible": reproducible}
    how |= {"alpha": factors[0], "beta": factors[1], "c": c if factors[1] else None}
    out = Store(np.full((m, n), np.nan, np.float32), chunks)
    (tmp_path / "journal").unlink(missing_ok=True)
    in_two_runs(at, **how, out=out, checkpoint=tmp_path / "journal")
    assert out.whole_chunks_were_written()
    assert np.array_equal(out.values.view(np.uint32), gemmlab.gemm(**how).view(np.uint32))


@needs_tiles
@pytest.mark.parametrize(("precision", "kernel"), [("float32", None), ("bf16x6", None), ("bf16x6", "amx_bf16x6")])
def test_whole_chunks_have_the_bits_of_tiles(tmp_path: Path, precision: str, kernel: str | None) -> None:
    """AMX tiles compute a block of 32 x 32 by a method that depends on the elements of all of it."""
    rng = np.random.default_rng(9)
    a, b = (rng.random(shape, dtype=np.float32) for shape in ((700, 300), (300, 800)))
    a[[100, 333]] *= np.float32(1e-38)
    b[:, [299, 555]] *= np.float32(2.0**100)
    how: dict[str, Any] = {"a": a, "b": b, "precision": precision, "kernel": kernel}
    out = Store(np.full((700, 800), np.nan, np.float32), (10, 6))
    complete, count = in_two_runs(2, **how, out=out, memory_bytes=3_000_000, checkpoint=tmp_path / "journal")
    assert 0 < complete < count
    assert out.whole_chunks_were_written()
    assert np.array_equal(out.values.view(np.uint32), gemmlab.gemm(**how).view(np.uint32))


def test_chunks_without_a_small_common_multiple_with_the_tile(tmp_path: Path) -> None:
    """A common multiple of chunks of 1000 and a CPU's tile, 12000 x 8000, would be the whole result."""
    shape = (9000, 7000)
    a, b = np.ones((shape[0], 2), np.float32), np.ones((2, shape[1]), np.float32)
    out = Store(np.zeros(shape, np.float32), (1000, 1000))
    complete, count = in_two_runs(2, a=a, b=b, out=out, memory_bytes=60 << 20, checkpoint=tmp_path / "journal")
    head = lines(tmp_path)[0]
    assert 0 < complete < count
    assert (head["rows"] % 1000, head["cols"] % 1000) == (0, 0)
    assert np.all(out.values == 2)
