"""`gemmlab new --rung`: a rung is really inserted, in a copy of the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gemmlab.cli.app import build_app
from gemmlab.core.errors import UsageError
from gemmlab.devices.select import open_device
from gemmlab.kernels import catalog
from gemmlab.kernels.rung_draft import OPEN, draft_rung
from gemmlab.kernels.stated_facts import restated
from gemmlab.ops.catalog import find_op
from gemmlab.verify.check import check_kernel
from support.paths import ROOT

SHIPPED = Path(catalog.__file__).parent
DESCRIPTOR = '''"""A kernel."""

KERNEL = cpu_kernel(
    __file__,
    after="naive_ijk",
    summary="one",
    idea="Two lines "
    "of text.",
    source="a source",
    emit=emit,
)
'''


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of what rungs for GPUs are added to, which the catalog reads."""
    kernels = tmp_path / "src" / "gemmlab" / "kernels"
    for folder in ("gemm_cuda", "reduce_cuda"):
        shutil.copytree(SHIPPED / folder, kernels / folder)
    (tmp_path / "docs").mkdir()
    for page in (ROOT / "docs").glob("ladder-*.md"):
        shutil.copy(page, tmp_path / "docs")
    monkeypatch.setattr(catalog, "_HERE", kernels)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    catalog._catalog.cache_clear()
    catalog.current_ids.cache_clear()


def new(*words: str) -> Any:
    done = CliRunner().invoke(build_app(), ["new", *words, "--json"])
    assert done.exit_code == 0, done.output
    forget()
    return json.loads(done.stdout)


def names(op: str) -> list[str]:
    return [kernel.id for kernel in catalog.ladder(op, "cuda")]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("op", "after", "follower", "page"),
    [("gemm", "vector_load", "register_stage", "ladder-gpu.md"),
     ("gemm", "wmma_tf32", "wmma_tf32_pipelined", "ladder-tensor.md"),
     ("reduce", "reduce_sequential", "reduce_first_add", "ladder-reduce.md")],
)  # fmt: skip
def test_a_rung_is_inserted(checkout: Path, op: str, after: str, follower: str, page: str) -> None:
    before = names(op)
    made = new("--rung", "probe", "--after", after)
    assert (made["kernel"], made["follower"], Path(made["page"])) == ("probe", follower, checkout / "docs" / page)
    place = before.index(after) + 1
    assert names(op) == [*before[:place], "probe", *before[place:]]
    assert catalog.find_kernel(follower).after == "probe"
    text = Path(made["page"]).read_text(encoding="utf-8")
    start, end = text.index("## probe\n"), text.index(f"## {follower}\n")
    assert text.index(f"## {after}\n") < start < end
    assert text[:start] + text[end:] == (ROOT / "docs" / page).read_text(encoding="utf-8")


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("checkout")
def test_a_branch_leaves_the_line_as_it_is() -> None:
    before = names("gemm")
    made = new("--rung", "probe", "--after", "async_copy", "--branch")
    assert made["follower"] == ""
    assert [name for name in names("gemm") if name != "probe"] == before
    assert catalog.find_kernel("block_swizzle").after == "async_copy"
    assert catalog.find_kernel("probe").branch


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("checkout")
def test_the_last_rung_of_a_page_gets_a_section_at_the_end_of_the_rungs() -> None:
    made = new("--rung", "probe", "--after", "mma_tf32_pipelined")
    text = Path(made["page"]).read_text(encoding="utf-8")
    assert text.index("## mma_tf32_pipelined\n") < text.index("## probe\n") < text.index("## Under Nsight Compute\n")


@pytest.mark.in_turns(20)
@pytest.mark.usefixtures("checkout")
def test_a_drafted_rung_computes_what_the_one_before_does() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")
    new("--rung", "probe", "--after", "block_tile", "--branch")
    cases = find_op("gemm").parse_sizes("33x34x35,1x1x1")
    report = check_kernel(catalog.find_kernel("probe"), open_device("emulated:sm_90"), find_op("gemm"), cases=cases)
    assert report.passed, report.explain()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_rung_of_a_cpu_is_inserted(tmp_path: Path) -> None:
    """In processes of their own: files of CPU kernels are modules of the package."""
    for folder in ("src", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    made = gemmlab(tmp_path, "new", "--rung", "probe", "--after", "naive_ijk")
    assert made["follower"] == "loop_reorder_ikj"
    assert Path(made["file"]).read_text(encoding="utf-8").startswith(f'"""{OPEN}."""\n')
    listed = gemmlab(tmp_path, "list", "--op", "gemm", "--device", "cpu")
    assert [kernel["id"] for kernel in listed][:3] == ["naive_ijk", "probe", "loop_reorder_ikj"]
    assert gemmlab(tmp_path, "check", "probe", "--sizes", "9x8x7")["passed"]


def gemmlab(checkout: Path, *words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "gemmlab", *words, "--json"], env={**os.environ, "PYTHONPATH": str(checkout / "src")},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return json.loads(done.stdout)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("name", "after", "said"),
    [
        ("naive", "block_tile", "--rung naive: it exists already, gemm_cuda/naive.cu"),
        ("Naive", "block_tile", "--rung Naive: a kernel is named in small letters"),
        ("new_rung", "blok_tile", "did you mean block_tile"),
    ],
)
def test_what_cannot_be_inserted_is_refused(name: str, after: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        draft_rung(name, after)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rung", "x"], "--rung NAME needs --after KERNEL"),
        (["mine.cu", "--rung", "x", "--after", "naive"], "--rung NAME needs --after KERNEL and takes no FILE.cu"),
        (["mine.cu", "--after", "naive"], "--after and --branch are options of --rung NAME"),
        ([], r"name the FILE\.cu to write, or a new rung"),
    ],
)
def test_arguments_that_do_not_go_together(words: list[str], said: str) -> None:
    done = CliRunner().invoke(build_app(), ["new", *words])
    assert done.exit_code == 2
    assert said.replace("\\", "") in done.stderr


def test_facts_are_written_anew_in_a_header(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text('/* gemmlab\nafter = "a"\nexpect = [\n  # why\n  "x == 1",\n]\n\n[params]\nBM = 1\n*/\ncode = 1;\n')
    text = restated(path, {"after": "b", "branch": True, "expect": None, "aliases": None})
    assert text == '/* gemmlab\nafter = "b"\nbranch = true\n\n[params]\nBM = 1\n*/\ncode = 1;\n'
    path.write_text(text)
    assert restated(path, {"branch": None}) == '/* gemmlab\nafter = "b"\n\n[params]\nBM = 1\n*/\ncode = 1;\n'


def test_facts_are_written_anew_in_a_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(DESCRIPTOR)
    text = restated(path, {"idea": "A §.", "after": "b", "branch": True, "aliases": None})
    assert text == DESCRIPTOR.replace('"Two lines "\n    "of text."', '"A §."').replace(
        'after="naive_ijk",', 'after="b",\n    branch=True,'
    )
    path.write_text(text)
    assert "branch" not in restated(path, {"branch": None})
    path.write_text("KERNEL = 1\n")
    with pytest.raises(UsageError, match=r"no `KERNEL = cpu_kernel"):
        restated(path, {"after": "b"})
