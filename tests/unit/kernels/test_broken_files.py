"""A bad file in a kernel folder: it is named, and every other kernel can be used."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.errors import UsageError
from gemmlab.kernels import catalog

SHIPPED = Path(catalog.__file__).parent / "gemm_cuda"
RUNGS = ("naive_strided", "naive", "block_tile", "thread_tile_1d")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The folder of a ladder of four rungs."""
    own = tmp_path / "gemm_cuda"
    own.mkdir()
    for name in RUNGS:
        shutil.copy(SHIPPED / f"{name}.cu", own)
    monkeypatch.setattr(catalog, "_HERE", tmp_path)
    forget()
    yield own
    forget()


def forget() -> None:
    catalog._catalog.cache_clear()
    catalog.current_ids.cache_clear()


@pytest.mark.parametrize("text", ["", "nothing at all", "/* gemmlab\nsummary = 3\n*/", "/* gemmlab\nx = [\n*/"])
def test_a_file_that_is_no_kernel_is_named_and_left_out(folder: Path, text: str) -> None:
    (folder / "mine.cu").write_text(text)
    assert [kernel.id for kernel in catalog.all_kernels()] == [*RUNGS]
    assert list(catalog.broken_kernels()) == ["mine"]
    with pytest.raises(UsageError, match=r"gemm_cuda/mine\.cu"):
        catalog.find_kernel("mine")
    done = CliRunner().invoke(build_app(), ["list", "--rungs"])
    assert (done.exit_code, done.stdout.split()) == (0, [*RUNGS])
    assert "left out: gemm_cuda/mine.cu" in done.stderr


def test_rungs_after_a_broken_one_stay_on_the_ladder(folder: Path) -> None:
    path = folder / "naive.cu"
    path.write_text(path.read_text().replace("summary =", "sumary ="))
    left = catalog.ladder("gemm", "cuda")
    assert [(rung.id, rung.after, rung.step) for rung in left] == [
        ("naive_strided", "", 1), ("block_tile", "naive_strided", 2), ("thread_tile_1d", "block_tile", 3),
    ]  # fmt: skip
    assert list(catalog.broken_kernels()) == ["naive"]


def test_a_rung_without_a_place_costs_the_others_nothing(folder: Path) -> None:
    text = (folder / "naive.cu").read_text().replace("naive(", "mine(")
    (folder / "mine.cu").write_text(text.replace('after = "naive_strided"', 'after = "naiv"'))
    assert [kernel.id for kernel in catalog.all_kernels()] == [*RUNGS]
    assert "after = 'naiv' is no rung" in catalog.broken_kernels()["mine"]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("name", ["README.md", "softmax.py", "missing/mine.cpp", "Makefile"])
def test_a_file_of_another_kind_is_said_to_be_no_kernel_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Makefile").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"is no kernel file: .* end in \.cu or \.cuh") as refusal:
        catalog.find_kernel(name)
    assert "naive" not in str(refusal.value)


@pytest.mark.in_turns(20)
def test_a_misspelt_id_gets_the_nearest_names() -> None:
    with pytest.raises(UsageError, match=r"no kernel named 'blok_tile'; .*block_tile"):
        catalog.find_kernel("blok_tile")
