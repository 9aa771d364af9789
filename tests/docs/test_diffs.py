"""The diffs of the rungs: of code alone, and true."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from blocks import diffs
from blocks.records import ROOT
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.kernels.kernel import Kernel

PAGE = (ROOT / "docs" / diffs.PAGE).read_text(encoding="utf-8")
RUNGS = [pytest.param(kernel, id=kernel.id) for kernel in all_kernels() if kernel.step is not None]
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def patched(kernel: Kernel, old: list[str], changed: list[str]) -> list[str]:
    """What a unified diff makes of lines; refuses one that does not fit them."""
    made, taken = list[str](), 0
    for line in changed:
        hunk = HUNK.fullmatch(line)
        if hunk:
            # A hunk without old lines names the line that it comes after.
            begins = int(hunk[1]) - (0 if hunk[2] == "0" else 1)
            made += old[taken:begins]
            taken = begins
            continue
        if line[0] != "+":
            assert diffs.compared(kernel, [old[taken]]) == diffs.compared(kernel, [line[1:]])
            taken += 1
        if line[0] != "-":
            made.append(line[1:])
    return made + old[taken:]


@pytest.mark.parametrize("kernel", RUNGS)
def test_the_diff_on_the_page_makes_the_rung_of_the_one_before(kernel: Kernel) -> None:
    section = re.split(rf"^### {kernel.id}$", PAGE, flags=re.MULTILINE)[1].partition("\n### ")[0]
    if not kernel.after:
        assert f"all {len(diffs.code_of(kernel))} lines" in section
        return
    shown = re.search(r"^```diff\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    before = find_kernel(kernel.after)
    old = [re.sub(rf"\b{before.id}\b(?=\s*\(|$)", kernel.id, line) for line in diffs.unfolded(before, of=kernel)]
    made = patched(kernel, old, shown[1].splitlines() if shown else [])
    assert diffs.compared(kernel, made) == diffs.compared(kernel, diffs.unfolded(kernel))


def test_a_line_that_only_moves_to_another_indentation_is_shown_as_it_is_now() -> None:
    """The body of unguarded's loop stands one level deeper than that of the rung before."""
    kernel = find_kernel("unguarded")
    lines = [line[1:] for line in diffs.changes(kernel) if line[0] in " +"]
    assert set(lines) <= set(diffs.code_of(kernel))
    shallow = "    const auto read = [&](const float* stage, int k) {"
    assert shallow in diffs.code_of(find_kernel(kernel.after or ""))
    assert f"     {shallow}" in diffs.changes(kernel)  # a blank for "unchanged", and one level


@pytest.mark.parametrize("kernel", RUNGS)
def test_a_description_is_no_code(kernel: Kernel) -> None:
    code = "\n".join(diffs.code_of(kernel))
    assert kernel.id in code or kernel.device == "cpu"
    assert kernel.summary not in code
    assert kernel.idea not in code
    assert not re.search(r"^(KERNEL|after) = ", code, re.MULTILINE)


def test_another_code_makes_another_diff(tmp_path: Path) -> None:
    kernel = find_kernel("block_tile")
    path = tmp_path / "block_tile.cu"
    path.write_text(kernel.path.read_text(encoding="utf-8") + "// one line more\n", encoding="utf-8")
    more = diffs.changes(replace(kernel, path=path))
    assert [line for line in more if line not in diffs.changes(kernel)][-1] == "+// one line more"
    assert diffs.size_of(["+a", "-b", "-c", " d"]) == "1 line added, 2 removed"


def test_a_rung_that_begins_a_line_has_no_diff() -> None:
    kernel = find_kernel("naive_ijk")
    assert (diffs.changes(kernel), diffs.link(kernel)) == ([], "")


def test_what_a_rung_includes_of_the_one_before_is_no_change() -> None:
    """mma_bf16x6 includes the file of mma_tf32x3, and has a kernel of its own."""
    kernel = find_kernel("mma_bf16x6")
    changed = diffs.changes(kernel)
    assert len([line for line in changed if line[0] == "-"]) == 1
    assert any("struct SixProducts" in line for line in changed)
    whole = "\n".join(diffs.unfolded(kernel))
    assert "multiply_by_parts(" in whole
    assert "mma_tf32x3(" not in whole
    assert diffs.unfolded(find_kernel("mma_tf32x3")) == diffs.code_of(find_kernel("mma_tf32x3"))


def test_a_rung_includes_files_of_others_than_the_one_before() -> None:
    """by_tile comes after bf16x6; f16x3 is not behind it, so the line that includes it is new."""
    kernel = find_kernel("by_tile")
    whole = diffs.unfolded(kernel)
    assert '#include "f16x3.cu"' in whole
    assert '#include "bf16x6.cu"' not in whole


def test_a_rung_of_new_lines_is_called_a_second_start() -> None:
    kernel = find_kernel("narrow_strip")
    lines = len(diffs.code_of(kernel))
    added = sum(line[0] == "+" for line in diffs.changes(kernel))
    said = f"A second start: {lines - added} of its {lines} lines"
    assert said in diffs.start_of(kernel, diffs.changes(kernel))
    assert said in PAGE
    small = find_kernel("warp_tile_double_buffer")
    assert diffs.start_of(small, diffs.changes(small)) == ""
