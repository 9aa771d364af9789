"""The API reference is whole, and every docstring in it says what a caller has to know."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gemmlab
from blocks.api import api_block, signature
from gemmlab import blas

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
# What `blas` compiles at its first access is no Python function, and not among its variables before.
PUBLIC = [(gemmlab, name) for name in gemmlab.__all__] + [(blas, name) for name in blas.__all__ if name in vars(blas)]
CALLS = [
    pytest.param(getattr(module, name), id=name) for module, name in PUBLIC if inspect.isfunction(getattr(module, name))
]


def test_the_page_is_that_of_this_code() -> None:
    assert f"<!-- begin api -->\n\n{api_block()}\n" in PAGE.read_text(encoding="utf-8"), "run `make tables`"


def test_every_public_name_is_there() -> None:
    text = api_block()
    for name in set(gemmlab.__all__) - {"__version__"}:
        assert f"## gemmlab.{name}\n" in text or f"\n| `{name}` |" in text, name
    for name in blas.__all__:
        assert f"### gemmlab.blas.{name}\n" in text, name
    # To import `gemmlab.distributed` would need torch.
    source = Path(inspect.getfile(gemmlab)).parent / "distributed" / "__init__.py"
    public = re.search(r"^__all__ = (\[.*\])$", source.read_text(encoding="utf-8"), re.MULTILINE)
    assert public
    for name in ast.literal_eval(public[1]):
        assert f"### gemmlab.distributed.{name}\n" in text, name
    assert "\n    *,\n    c: DTensor | None = None,\n" in text
    assert "- `best: Candidate`" in text
    assert "- `reason: str`: One sentence" in text
    assert "- `received: int`: Bytes that" in text


@pytest.mark.parametrize("call", CALLS)
def test_a_docstring_tells_every_parameter_and_what_is_raised(call: Callable[..., Any]) -> None:
    text = inspect.getdoc(call) or ""
    code = " ".join(re.findall(r"`([^`]+)`", text))
    assert [name for name in inspect.signature(call).parameters if not re.search(rf"\b{name}\b", code)] == []
    raised = re.findall(r"`(\w+Error)`", text.partition("Raises ")[2])
    assert raised
    assert [name for name in raised if name not in gemmlab.__all__ and name != "MemoryError"] == []


def test_a_signature_is_as_it_is_declared() -> None:
    def few(a: int, *rest: str, b: float = 0.5) -> None: ...

    def many(
        first: str, *, second: Callable[[str, int], object] | None = None, third: tuple[int, int, int]
    ) -> None: ...

    assert signature("few", few) == "few(a: int, *rest: str, *, b: float = 0.5) -> None"
    assert signature("many", many).splitlines()[:4] == [
        "many(", "    first: str,", "    *,", "    second: Callable[[str, int], object] | None = None,",
    ]  # fmt: skip
