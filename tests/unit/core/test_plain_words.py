"""Docstrings begin with their subject or a verb, so that no reader finds out at its end what a sentence is about; and
names are nouns of the field.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pytest

from support.paths import ROOT

PACKAGE = ROOT / "src" / "gemmlab"
OPENING = re.compile(r"(Of|That|Which|Who|What|Where|When|Whether|How|Whose|Why)\b")
DEFINITIONS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PARTICIPLES = frozenset({
    "told", "seen", "kept", "held", "judged", "unread", "disturbed", "touched", "traced", "asked", "said", "foretold",
    "gone", "lent", "spent", "stuck", "got", "brought", "given", "renamed",
})  # fmt: skip
"""Words that do not say what a value is: `visited`, `message` or `observation` do."""
TO_RENAME = {
    "emulator/isa/control.py": {"kept", "said"},
    "emulator/layout.py": {"seen", "kept", "spent"},
    "emulator/loop.py": {"held", "kept", "spent"},
    "emulator/memory_lanes.py": {"seen"},
}
"""Names that are still there: fields of emulated state, and locals beside them."""


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, name and text of every docstring, those of attributes and variables included."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, DEFINITIONS) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), getattr(node, "name", ""), text
        for before, after in pairwise(body if isinstance(body, list) else ()):
            named = before.targets[0] if isinstance(before, ast.Assign) else getattr(before, "target", None)
            text_node = after.value if isinstance(after, ast.Expr) else None
            if named is not None and isinstance(text_node, ast.Constant) and isinstance(text_node.value, str):
                yield after.lineno, ast.unparse(named).removeprefix("self."), text_node.value


def definitions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every function, class, parameter, variable and attribute that a module defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr


def participles(name: str) -> set[str]:
    return set(PARTICIPLES.intersection(name.lower().split("_")))


@cache
def package() -> tuple[list[tuple[str, str, str]], list[tuple[str, int, str]]]:
    """Every docstring of the package with its place and name, and every name with its module and line.

    One test reads all modules: with a test for each, pytest takes longer than the rule.
    """
    texts, names = list[tuple[str, str, str]](), list[tuple[str, int, str]]()
    for file in sorted(PACKAGE.rglob("*.py")):
        path, tree = file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text(encoding="utf-8"))
        texts += [(f"{path}:{line}", name, text) for line, name, text in docstrings(tree)]
        names += [(path, line, name) for line, name in [(0, file.stem), *definitions(tree)]]
    assert texts
    return texts, names


@pytest.mark.in_turns(20)
def test_docstrings_begin_with_their_subject() -> None:
    assert [f"{place}: {text[:60]}" for place, _name, text in package()[0] if OPENING.match(text)] == []


@pytest.mark.in_turns(20)
def test_no_docstring_repeats_a_name() -> None:
    """`"stream."` of a variable `stream`, say."""
    found = [f"{place}: {name}" for place, name, text in package()[0] if name and letters(text) == letters(name)]
    assert found == []


def test_names_are_nouns() -> None:
    found = [each for each in package()[1] if participles(each[2]) - TO_RENAME.get(each[0], set())]
    assert found == []


def test_participles_are_found_in_every_kind_of_name() -> None:
    method = " def held(self, seen, *, first_seen=0):\n  self._asked = 1\n  said = [got for got in seen]"
    code = f"class Told:\n kept: int\n{method}"
    found = [name for _line, name in definitions(ast.parse(code)) if participles(name)]
    assert sorted(found) == ["Told", "_asked", "first_seen", "got", "held", "kept", "said", "seen"]


def letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", text.lower())
