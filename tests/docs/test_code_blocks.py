"""Python code of the pages that no test runs has at least no error in its syntax."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```text\n((?:import|from) .*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[str]:
    """Blocks of `text` that begin with an import: they need files, packages or a GPU, so no test runs them."""
    return BLOCK.findall(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_that_begin_with_an_import_compile(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        compile(block, str(page), "exec")


def test_joined_lines_are_found() -> None:
    (block,) = blocks("```text\nimport os\na = 1  # one b = 2\n```\n\n```text\nmake wheel\n```\n")
    compile(block, "page", "exec")
    (joined,) = blocks("```text\nimport os\na = 1 b = 2\n```\n")
    with pytest.raises(SyntaxError):
        compile(joined, "page", "exec")


def test_the_pages_have_such_blocks() -> None:
    found = {page.name for page in PAGES if blocks(page.read_text(encoding="utf-8"))}
    assert {"larger-than-memory.md", "distributed.md", "dask.md"} <= found
