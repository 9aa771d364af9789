"""The example notebook runs cell by cell in IPython's shell, and is stored without outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.cuda_source import needs_compiler

pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
CELLS: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


def test_it_is_stored_without_outputs_and_small() -> None:
    assert NOTEBOOK.stat().st_size < 20_000
    for cell in CELLS:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
    assert len({cell["id"] for cell in CELLS}) == len(CELLS)
    assert f"({NOTEBOOK.name})" in NOTEBOOK.with_name("README.md").read_text(encoding="utf-8")


def test_it_uses_public_names_alone() -> None:
    import gemmlab

    named = {name for text in CODE for name in re.findall(r"\bgemmlab\.(\w+)", text)}
    assert named <= set(gemmlab.__all__)


@pytest.mark.in_turns(20)
@needs_compiler
def test_its_cells_run_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    InteractiveShell.clear_instance()
    shell: Any = InteractiveShell.instance()
    shell.history_manager.enabled = False
    values = []
    try:
        for text in CODE:
            done = shell.run_cell(text, store_history=False)
            assert done.success, (text, done.error_before_exec or done.error_in_exec)
            values.append(done.result)
    finally:
        InteractiveShell.clear_instance()
    drawn = [value for value in values if hasattr(value, "_repr_html_")]
    assert len(drawn) == 5
    assert all(len(repr(value)) < 300 for value in drawn)
