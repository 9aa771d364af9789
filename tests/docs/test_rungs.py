"""What a new rung lacks, in one message."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from blocks import exercises
from blocks import lacking as lacks
from blocks.lacking import lacking
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.kernels.choice_exercise import choice_ids
from gemmlab.kernels.exercise import exercise_ids
from gemmlab.kernels.exercise_words import NO_EXERCISE
from gemmlab.kernels.rung_draft import OPEN, section_text

ON_A_GPU = "make gpu-results"


@pytest.mark.in_turns(20)
def test_no_rung_lacks_anything() -> None:
    """Fails where the pages cannot be made; what a draft leaves open is an expected failure that names it."""
    found = [lack for kernel in all_kernels() if kernel.step is not None for lack in lacking(kernel)]
    timed = [lack for lack in found if lack.what.endswith(ON_A_GPU)]
    lines = [f"- {lack}" for lack in found if lack not in timed]
    if timed:
        # Nobody without a GPU can do anything about these: one line, so that it does not hide the others.
        rungs = ", ".join(dict.fromkeys(lack.rung for lack in timed))
        lines.append(f"- {len(timed)} results that need a GPU ({ON_A_GPU}): {rungs}")
    said = "\n".join(lines)
    if any(lack.drafted for lack in found):
        pytest.fail(f"rungs lack:\n{said}")
    if found:
        pytest.xfail(f"rungs are unfinished:\n{said}")


def test_everything_that_a_new_rung_lacks_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rung = replace(
        find_kernel("double_buffer"), id="new_rung", summary=f"{OPEN}.", idea="fast", source="a note", expect=()
    )
    assert [str(lack) for lack in lacking(rung)] == [
        "new_rung: `summary` in gemm_cuda/double_buffer.cu",
        "new_rung: `source` in gemm_cuda/double_buffer.cu that says where the technique comes from: 'a note'",
        "new_rung: a whole sentence as `idea` in gemm_cuda/double_buffer.cu",
        "new_rung: `expect` in gemm_cuda/double_buffer.cu: what its counters must show",
        "new_rung: an exercise, kernels/exercises/new_rung.cu, or the reason for none (NO_EXERCISE)",
        "new_rung: a result in benchmarks/results/emulated/counters.json: make counts",
        "new_rung: a result in benchmarks/results/h200/gemm.json: make gpu-results",
        "new_rung: a result in benchmarks/results/h200/ncu.json: make gpu-results",
        "new_rung: a section `## new_rung` in docs/ladder-gpu.md, as gemmlab new --rung drafts it",
    ]
    page = tmp_path / "docs" / "ladder-gpu.md"
    page.parent.mkdir()
    monkeypatch.setattr(lacks, "page_of", lambda _kernel: page)
    page.write_text(f"# The ladder\n\n{section_text(rung)}## Another\n")
    assert [lack.what for lack in lacking(rung)][
        -1
    ] == f"text in its section of docs/ladder-gpu.md: it still says {OPEN!r}"
    page.write_text("# The ladder\n\n## new_rung\n\nText.\n\n## Another\n")
    assert [(lack.what, lack.drafted) for lack in lacking(rung)][-2:] == [
        ("the block `rung-new_rung` in its section of docs/ladder-gpu.md", True),
        ("a picture (```text) in its section of docs/ladder-gpu.md", False),
    ]


def test_no_exercise_is_of_anything_but_a_rung() -> None:
    """A rung without one is unfinished, which `lacking` says."""
    rungs = {kernel.id for kernel in all_kernels() if kernel.step is not None}
    exercised = {*exercise_ids(), *choice_ids()}
    assert exercised | {*NO_EXERCISE} <= rungs
    assert exercised & {*NO_EXERCISE} == set()
    assert all(len(why) > 40 and why.endswith(".") for why in NO_EXERCISE.values())


def test_the_pages_are_made_without_the_exercise_of_a_drafted_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    draft = replace(find_kernel("double_buffer"), id="new_rung")
    monkeypatch.setattr(exercises, "all_kernels", lambda: [find_kernel("double_buffer"), draft])
    table = exercises.exercises()
    assert "double_buffer" in table
    assert "new_rung" not in table


def test_a_finished_rung_lacks_nothing() -> None:
    for name in ("double_buffer", "mma_tf32_pipelined", "reduce_peak", "reduce_vector", "packed"):
        assert list(lacking(find_kernel(name))) == []
