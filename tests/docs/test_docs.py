"""The pages are true: their code runs, their tables are fresh, their links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import asdict, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from gemmlab.cli.app import build_app
from gemmlab.core.records import load_record
from gemmlab.devices.cpu import CpuDevice
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import all_kernels, find_kernel, ladder
from gemmlab.kernels.cuda_file.header import KEYS
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.observe.cache_misses import simulate
from gemmlab.observe.cache_record import CacheRow, cache_rows
from gemmlab.ops.gemm import GemmOp
from gemmlab.probes.cachesim import REFERENCE
from gemmlab.results.climb_rows import climb_rows, digits, peaks, percent
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler
from support.paths import CPU

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
RESULTS = ROOT / "benchmarks" / "results" / CPU
CLIMB = RESULTS / "climb.json"
RUNGS = {kernel.id for kernel in all_kernels() if kernel.step is not None}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_lists_every_key_of_a_header() -> None:
    page = (ROOT / "docs" / "adding-a-kernel.md").read_text(encoding="utf-8")
    table = page.partition("| key | meaning |\n")[2].partition("\n\n")[0]
    first_cells = [row.split(" | ")[0] for row in table.splitlines()]
    assert sorted(re.findall(r"`(\w+)`", " ".join(first_cells))) == sorted(KEYS)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "python"):
        (tmp_path / "block.py").write_text(block, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "block.py"], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.in_turns(20)
def test_the_example_kernel_is_right(tmp_path: Path) -> None:
    (block,) = blocks(ROOT / "docs" / "adding-a-kernel.md", "python")
    (tmp_path / "my_kernel.py").write_text(block, encoding="utf-8")
    kernel = load(tmp_path / "my_kernel.py").KERNEL
    assert kernel.id == "my_kernel"
    report = check_kernel(kernel, CpuDevice(), GemmOp())
    assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_example_of_a_cuda_kernel_is_right(tmp_path: Path) -> None:
    block, *_others = blocks(ROOT / "docs" / "adding-a-kernel.md", "cuda")
    path = tmp_path / "my_kernel.cu"
    path.write_text(block, encoding="utf-8")
    report = check_kernel(user_kernel(path), open_device("emulated:sm_90"), GemmOp())
    assert report.passed, report.explain()


def test_readme_has_code_to_run() -> None:
    assert any("gemmlab.gemm" in block for block in blocks(ROOT / "README.md", "python"))


def commands() -> dict[str, Any]:
    found: dict[str, Any] = typer.main.get_command(build_app()).commands  # type: ignore[attr-defined]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_shown_exist_with_their_options(page: Path) -> None:
    for line in "\n".join(blocks(page, "(?:sh|text)")).splitlines():
        words = line.split("  ")[0].split("#")[0].split()
        if words[:1] != ["gemmlab"]:
            continue
        assert words[1] in commands(), line
        parameters = commands()[words[1]].params
        valued = {
            name for parameter in parameters if not getattr(parameter, "is_flag", True) for name in parameter.opts
        }
        plain = [word for before, word in pairwise(words[1:]) if before not in valued]
        named = [word for word in plain if re.fullmatch(r"[a-z][a-z0-9_]+", word)]
        assert set(named) <= {kernel.id for kernel in all_kernels()} | {"my_kernel"}, line
        options = {name for parameter in parameters for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options | {"--help"}, line


def test_readme_names_every_verb() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [verb for verb in commands() if f"| `gemmlab {verb}` |" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_internal_links_resolve(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        path = page if not name else page.parent / name
        assert path.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
            # A rung without a section is what test_rungs.py is about.
            assert anchor in anchors or anchor in RUNGS


@pytest.mark.parametrize(("page", "op"), [("ladder-cpu.md", "gemm"), ("ladder-reduce.md", "reduce")])
def test_ladder_page_describes_the_rungs_in_order(page: str, op: str) -> None:
    headings = re.findall(r"^## (\w+)$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE)
    for device in ("cpu", "cuda"):
        rungs = [kernel.id for kernel in ladder(op, device)]
        assert [name for name in headings if name in rungs] == [name for name in rungs if name in headings]


def test_changelog_knows_this_version() -> None:
    import gemmlab

    assert f"\n## {gemmlab.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_generated_tables_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "makers" / "build_tables.py"), "--check"],
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run `make tables`"


@pytest.mark.skipif(not CLIMB.exists(), reason="no climb has been recorded yet")
def test_the_picture_shows_the_record() -> None:
    record = load_record(CLIMB)
    shown = CLIMB.with_suffix(".svg").read_text(encoding="utf-8")
    for row in climb_rows(record):
        assert row.name in shown
        share = "" if row.peak_share is None else f" ({percent(row.peak_share)})"
        assert f">{digits(row.gflops)}{share}<" in shown
    for peak in peaks(record).values():
        assert f"FMA peak {peak:.0f}<" in shown


@pytest.mark.skipif(not CLIMB.exists(), reason="no climb has been recorded yet")
def test_another_record_makes_other_tables() -> None:
    builder = load(ROOT / "makers" / "build_tables.py")
    record = load_record(CLIMB)
    other = replace(record, results=tuple(replace(result, flops=result.flops // 2) for result in record.results))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert builder.cpu.climb_table(record) in text
    assert builder.cpu.climb_table(other) not in text


@cache
def misses() -> dict[tuple[str, int], CacheRow]:
    """Rows of the recorded simulation by rung and inner dimension."""
    return {(row.kernel, int(row.size.split("x")[2])): row for row in cache_rows(load_record(RESULTS / "cache.json"))}


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("kernel", ["naive_ijk", "loop_reorder_ikj", "blas_naive", "cache_block"])
def test_the_recorded_misses_are_those_of_the_code(kernel: str) -> None:
    """Of the rungs whose loops depend on no machine."""
    record = load_record(RESULTS / "cache.json")
    assert record.device["caches"] == asdict(REFERENCE)
    result = next(result for result in record.results if result.contestant == kernel)
    op = GemmOp()
    found = simulate(find_kernel(kernel), op, op.problem_from_json(result.problem), REFERENCE)
    assert result.facts == {"total": asdict(found.total)}


def test_what_the_page_says_of_the_misses_is_in_the_record() -> None:
    row = misses()
    assert {kernel for kernel, _size in row} <= {kernel.id for kernel in ladder("gemm", "cpu")}
    naive, exchanged, block = ({n: row[name, n] for n in (250, 256, 1000, 1024)}
                               for name in ("naive_ijk", "loop_reorder_ikj", "cache_block"))  # fmt: skip
    packed, tile = ([row[name, n] for n in (250, 256, 1000, 1024)] for name in ("packed", "microkernel"))
    assert naive[256].l1_misses > 1000
    assert naive[250].l1_misses == pytest.approx(exchanged[250].l1_misses, rel=0.01)
    assert naive[250].l1_misses == pytest.approx(1000 / 16, rel=0.02)
    assert min(naive[1000].tlb_misses, naive[1024].tlb_misses) > 950
    assert naive[1000].l2_misses < 70
    assert naive[1024].l2_misses > 1000
    assert naive[1024].from_memory == pytest.approx(64, rel=0.01)
    assert all(exchanged[n].l1_misses == pytest.approx(1000 / 16, rel=0.02) for n in exchanged)
    assert exchanged[1000].l2_misses == pytest.approx(1000 / 16, rel=0.02)
    assert max(block[n].l2_misses / exchanged[n].l2_misses for n in (1000, 1024)) < 0.02
    assert max(block[n].l1_misses for n in (250, 1000)) < 10
    assert min(block[n].l1_misses for n in (256, 1024)) > 60
    assert max(r.l1_misses for r in packed) < 1.1 * min(r.l1_misses for r in packed)
    assert min(r.l1_misses for r in packed) > 1000 / 64
    assert max(r.l1_misses for r in tile) < 0.6 * min(r.l1_misses for r in packed)
    assert max(r.accessed_bytes for r in tile) < 1
    assert (round(naive[1024].accessed_bytes), round(exchanged[1024].accessed_bytes)) == (8, 12)


def test_the_share_of_packing_is_as_the_page_says() -> None:
    rows = cache_rows(load_record(RESULTS / "packing.json"))
    packed = [row for row in rows if row.kernel == "packed"]
    shares = [row.packing_bytes for row in packed if row.packing_bytes is not None]
    assert shares == sorted(shares, reverse=True)
    assert min(row.packing_l2_misses or 0.0 for row in packed) > 10 * min(shares)
    assert all(row.packing_time is not None and row.packing_time < 0.5 for row in packed)
    assert {row.kernel for row in rows} == {"packed", "microkernel"}
