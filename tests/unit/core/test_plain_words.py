"""Docstrings begin with their subject or a verb: no reader has to find out what a sentence is about at its end."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from support.paths import ROOT

PACKAGE = ROOT / "src" / "gemmlab"
OPENING = re.compile(r"(Of|That|Which|Who|What|Where|When|Whether|How|Whose|Why)\b")
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FILES = sorted(PACKAGE.rglob("*.py"))


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, name and text of every docstring, those of attributes included."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, DEFINITIONS) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), getattr(node, "name", ""), text
        if not isinstance(body, list) or isinstance(node, ast.FunctionDef):
            continue
        for before, after in pairwise(body):
            named = before.targets[0] if isinstance(before, ast.Assign) else getattr(before, "target", None)
            told = after.value if isinstance(after, ast.Expr) else None
            if isinstance(named, ast.Name) and isinstance(told, ast.Constant) and isinstance(told.value, str):
                yield after.lineno, named.id, told.value


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_docstrings_begin_with_their_subject(file: Path) -> None:
    found = list(docstrings(ast.parse(file.read_text(encoding="utf-8"))))
    assert [f"line {line}: {text[:60]}" for line, _name, text in found if OPENING.match(text)] == []


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_docstring_repeats_a_name(file: Path) -> None:
    """`"stream."` of a variable `stream`, say."""
    found = docstrings(ast.parse(file.read_text(encoding="utf-8")))
    assert [f"line {line}: {name}" for line, name, text in found if name and letters(text) == letters(name)] == []


def letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower())
