"""A renamed rung keeps its old id as an alias for a version: every way to name it takes that, with one notice."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core import warning
from gemmlab.core.records import save_record
from gemmlab.dispatch.measurements import table_from_json
from gemmlab.dispatch.override import named_kernel
from gemmlab.kernels import catalog
from gemmlab.kernels.aliases import current_contestant, read_record
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.precompile.cubins import jobs
from gemmlab.results.climb_rows import climb_rows
from support.report_records import gpu_bench, result

NOTICE = "gemmlab: the kernel plain is called naive; the next version drops the old name"
SHIPPED = Path(catalog.__file__).parent / "gemm_cuda"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Kernels of which one, `naive`, was called `plain`."""
    own = tmp_path / "gemm_cuda"
    own.mkdir()
    for name in ("naive_strided", "naive", "block_tile"):
        text = (SHIPPED / f"{name}.cu").read_text(encoding="utf-8")
        (own / f"{name}.cu").write_text(
            text.replace("\nop =", '\naliases = ["plain"]\nop =') if name == "naive" else text
        )
    monkeypatch.setattr(catalog, "_HERE", tmp_path)
    monkeypatch.setattr(warning, "_messages", set())
    caches = (catalog._catalog, catalog.current_ids)
    for cached in caches:
        cached.cache_clear()
    yield own
    for cached in caches:
        cached.cache_clear()


def run(*arguments: str) -> Any:
    return CliRunner().invoke(build_app(), list(arguments))


def test_python_gives_one_warning_at_the_line_of_the_caller(folder: Path) -> None:
    with pytest.warns(DeprecationWarning, match="plain is called naive") as caught:
        found = [named_kernel("plain", "cuda") for _ in range(2)]
    assert [(kernel.id, kernel.path) for kernel in found] == [("naive", folder / "naive.cu")] * 2
    assert [Path(warning.filename).name for warning in caught] == [Path(__file__).name]


@pytest.mark.usefixtures("folder")
def test_a_present_id_gives_none() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert catalog.find_kernel("naive").aliases == ("plain",)


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        ["list", "plain"],
        ["check", "plain", "--device", "emulated:sm_90", "--sizes", "8x8x8"],
        ["bench", "plain", "--device", "emulated:sm_90", "--sizes", "8x8x8"],
        ["profile", "plain", "--device", "emulated:sm_90", "--sizes", "64x64x64"],
        ["compile", "plain", "--arch", "sm_90"],
        ["explain", "plain", "--arch", "sm_90", "--sizes", "64x64x64"],
    ],
    ids=lambda words: words[0],
)
def test_a_verb_takes_it_with_one_line_on_standard_error(words: list[str]) -> None:
    if words[0] != "list":
        pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    assert done.stderr.strip().splitlines() == [NOTICE]
    assert '"id": "plain"' not in done.stdout
    assert "kernel:plain" not in done.stdout
    assert json.loads(done.stdout)


@pytest.mark.usefixtures("folder")
def test_records_of_the_old_and_the_new_name_are_compared(tmp_path: Path) -> None:
    now = gpu_bench()
    then = replace(now, results=(result("kernel:plain", "rung", 512, 6.0, name="plain"), *now.results[1:]))
    save_record(now, tmp_path / "new.json")
    save_record(then, tmp_path / "old.json")
    done = run("compare", str(tmp_path / "old.json"), str(tmp_path / "new.json"), "--json")
    assert (done.exit_code, done.stderr.strip()) == (0, NOTICE)
    assert "kernel:naive" in {case["contestant"] for case in json.loads(done.stdout)["cases"]}
    warning._messages.clear()
    with pytest.warns(DeprecationWarning, match="plain is called naive"):
        read = read_record(tmp_path / "old.json")
    assert (read.results[0].contestant, read.results[0].facts["name"]) == ("kernel:naive", "naive")
    assert read_record(tmp_path / "old.json", notice=False) == read


@pytest.mark.usefixtures("folder")
def test_a_page_has_one_section_for_both_names(tmp_path: Path) -> None:
    save_record(replace(gpu_bench(), results=(result("kernel:plain", "rung", 512, 6.0),)), tmp_path / "old.json")
    done = run("report", str(tmp_path / "old.json"), "--no-explain", "--out", str(tmp_path / "page.html"), "--json")
    assert (done.exit_code, done.stderr.strip()) == (0, NOTICE), done.output
    assert [kernel["id"] for kernel in json.loads(done.stdout)["kernels"]] == ["naive"]


@pytest.mark.usefixtures("folder")
def test_what_ships_with_the_package_is_read_without_a_notice() -> None:
    assert current_contestant("kernel:plain[BM=8]", notice=False) == "kernel:naive[BM=8]"
    assert current_contestant("baseline:plain", notice=False) == "baseline:naive"
    assert current_contestant("plain", notice=False) == "naive"
    assert current_contestant("cublas:tf32", notice=False) == "cublas:tf32"
    entry = {"kernel": "plain", "precision": "float32", "layouts": ["nn"], "arch": "", "config": {}, "threads": 1,
             "registers": 1, "smem": 0, "grid": ["1"], "parts": [], "figures": [5.0, 0.1, 0.04, 1.0, 2.0]}  # fmt: skip
    data = {"schema": "gemmlab.choices/2", "gpu": "H200", "taken": "", "memory_gbs": 1.0, "parts_gbs": 1.0,
            "entries": [entry]}  # fmt: skip
    (found,) = table_from_json(data).entries
    assert (found.kernel, found.figures.share_us, found.figures.ends) == ("naive", 0.04, 2.0)


@pytest.mark.usefixtures("folder")
def test_what_is_compiled_elsewhere_goes_by_the_present_id() -> None:
    with pytest.warns(DeprecationWarning, match="plain"):
        planned, _ = jobs(["plain"], ["sm_90"], {})
    assert {job.origin for job in planned} == {"naive"}


@pytest.mark.usefixtures("folder")
def test_rows_of_a_climb_are_in_the_present_order_whatever_their_recorded_steps() -> None:
    rungs = [
        result("kernel:unknown", "rung", 512, 9.0, step=1, name="unknown"),
        result("kernel:block_tile", "rung", 512, 9.0, step=2, name="block_tile"),
        result("kernel:naive", "rung", 512, 6.0, step=3, name="naive"),
    ]
    found = climb_rows(replace(gpu_bench(), kind="climb", results=tuple(rungs)))
    assert [row.name for row in found] == ["naive", "block_tile", "unknown"]


def test_a_step_of_an_own_file_is_ignored_with_one_notice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(warning, "_messages", set())
    path = tmp_path / "naive.cu"
    path.write_text((SHIPPED / "naive.cu").read_text(encoding="utf-8").replace("\nafter = ", "\nstep = 3\nafter = "))
    with pytest.warns(
        DeprecationWarning, match=r"naive\.cu:7: step: rungs are not numbered .* next version refuses"
    ) as caught:
        kernels = [user_kernel(path), user_kernel(path)]
    assert len(caught) == 1
    assert [(kernel.step, kernel.after) for kernel in kernels] == [(None, "naive_strided")] * 2


def test_a_step_of_a_shipped_file_is_refused(folder: Path) -> None:
    path = folder / "naive.cu"
    path.write_text(path.read_text(encoding="utf-8").replace("\nafter = ", "\nstep = 3\nafter = "))
    with pytest.raises(ValueError, match=r'gemm_cuda/naive\.cu:\d: step: rungs are not numbered; `after = "ID"`'):
        catalog.find_kernel("naive")
