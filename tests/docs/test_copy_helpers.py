"""The table of helpers for copies: every helper that a solution of an exercise calls has its signature there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blocks.copy_helpers import HEADERS, copy_helpers, helpers
from gemmlab.kernels.exercise import find_exercise

ROOT = Path(__file__).parents[2]
SOLUTIONS = [path for path in sorted((ROOT / "tests" / "data" / "exercises").glob("*.cu"))
             if any(header in path.read_text(encoding="utf-8") for header in HEADERS)]  # fmt: skip
FOLDER = ROOT / "src" / "gemmlab" / "kernels" / "cuda_common"


def test_every_function_of_the_headers_has_a_signature_and_words() -> None:
    for header in HEADERS:
        found = [*helpers(header)]
        assert len(found) == (FOLDER / header).read_text(encoding="utf-8").count("__device__")
        assert all(words for _signature, words in found)
    assert "`void copy_box_to(unsigned short blocks, SharedAddress to, const CUtensorMap& map," in copy_helpers()


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_what_a_solution_calls_is_in_the_table(path: Path) -> None:
    names = {signature.partition("(")[0].split()[-1] for header in HEADERS for signature, _words in helpers(header)}
    called = set(re.findall(r"\b(\w+)\(", path.read_text(encoding="utf-8"))) & names
    assert {"wait", "shared_address"} <= called
    assert all(f" {name}(" in copy_helpers() for name in called)
    task = find_exercise(path.stem)
    assert any(header in task.task + task.start for header in HEADERS)
