"""The block of docs/api.md: every public name with its signature and docstring."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from textwrap import fill, indent
from types import UnionType
from typing import Any

import gemmlab
from blocks.markdown import markdown_table
from gemmlab import blas
from gemmlab.core.counters import Counters, Metric, SiteCounters
from gemmlab.core.hazard import Hazard
from gemmlab.core.program import Artifact
from gemmlab.core.tabular import Tabular
from gemmlab.dispatch.choice_values import Candidate, Choice
from gemmlab.instruments.bench_result import BenchResult
from gemmlab.instruments.check_result import CheckResult
from gemmlab.instruments.climb_result import ClimbPart, ClimbResult
from gemmlab.instruments.explain_result import ExplainResult
from gemmlab.instruments.profile_result import ProfileResult
from gemmlab.instruments.tune_result import TuneResult
from gemmlab.launching import Launched
from gemmlab.results.comparison import Comparison
from gemmlab.verify.check_report import CheckReport

FIRST = ("gemm", "sum", "explain_choice")
WIDEST = 100
GIVEN_BACK: Mapping[str, Sequence[type]] = {
    "bench": (BenchResult,),
    "check": (CheckResult, CheckReport),
    "climb": (ClimbResult, ClimbPart),
    "compare": (Comparison,),
    "explain": (ExplainResult,),
    "explain_choice": (Choice, Candidate),
    "profile": (ProfileResult,),
    "tune": (TuneResult,),
    "launch": (Launched, Counters, SiteCounters, Metric, Hazard, Artifact),
}
"""Name of a function -> the classes of its result and of the values in it."""
DISTRIBUTED = ("gemm", "explain_choice", "Choice", "Candidate", "Traffic")
"""The public names of `gemmlab.distributed`."""


def api_block() -> str:
    """Return the block: contents, functions with the classes of their results, public classes, BLAS names, errors."""
    calls = [name for name in gemmlab.__all__ if inspect.isfunction(getattr(gemmlab, name))]
    calls.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    parts = [_contents([*calls, *_classes()])]
    for name in calls:
        call = getattr(gemmlab, name)
        if call is getattr(blas, name, None):
            parts += [f"## gemmlab.{name}", f"The same as [`gemmlab.blas.{name}`](#gemmlabblas{name})."]
            continue
        parts += _call(f"gemmlab.{name}", call)
        parts += [_class(given) for given in GIVEN_BACK.get(name, ())]
    for name in _classes():
        made = getattr(gemmlab, name)
        shown = signature(f"gemmlab.{name}", made.__init__).replace(" -> None", "")
        parts += [f"## gemmlab.{name}", f"```py\n{shown}\n```", inspect.getdoc(made) or ""]
    parts += ["## gemmlab.blas", inspect.getdoc(blas) or ""]
    told = _attribute_docs(inspect.getsource(blas))
    for name in blas.__all__:
        if name in told:
            parts += [f"### gemmlab.blas.{name}", told[name]]
        else:
            parts += _call(f"gemmlab.blas.{name}", getattr(blas, name), "###")
    return "\n\n".join([*parts, *_distributed(), "## Errors", _errors()])


def _distributed() -> list[str]:
    """Return the parts on `gemmlab.distributed`. They are made from its source: to import it would need torch."""
    package = Path(gemmlab.__file__).parent / "distributed"
    root = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    parts = ["## gemmlab.distributed", ast.get_docstring(root) or ""]
    modules = _imported(root)
    for name in DISTRIBUTED:
        source = (package / f"{modules[name]}.py").read_text(encoding="utf-8")
        declared = next(one for one in ast.parse(source).body if getattr(one, "name", "") == name)
        if isinstance(declared, ast.FunctionDef):
            shown = _declared(f"gemmlab.distributed.{name}", declared)
            parts += [f"### gemmlab.distributed.{name}", f"```py\n{shown}\n```", ast.get_docstring(declared) or ""]
        elif isinstance(declared, ast.ClassDef):
            parts += [f"### gemmlab.distributed.{name}", ast.get_docstring(declared) or "", _fields(source, declared)]
    return parts


def _imported(root: ast.Module) -> dict[str, str]:
    """Return the names that a package imports from its modules, and the modules."""
    found = [one for one in root.body if isinstance(one, ast.ImportFrom) and one.module]
    return {alias.name: str(one.module).rpartition(".")[2] for one in found for alias in one.names}


def _declared(name: str, declared: ast.FunctionDef) -> str:
    """Return a function as its source declares it, in the form of `signature`."""
    arguments = declared.args
    words = [f"{one.arg}: {ast.unparse(one.annotation)}" for one in arguments.args if one.annotation]
    words += ["*"] if arguments.kwonlyargs else []
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        words += [ast.unparse(ast.AnnAssign(ast.Name(one.arg), one.annotation or ast.Name("Any"), default, simple=1))]
    return _fitted(name, words, f") -> {ast.unparse(declared.returns) if declared.returns else None}")


def _fields(source: str, declared: ast.ClassDef) -> str:
    """Return the entries of a class's fields and properties, as its source declares them."""
    told = _attribute_docs(ast.get_source_segment(source, declared) or "", of_class=True)
    lines = list[str]()
    for one in declared.body:
        if isinstance(one, ast.AnnAssign):
            field = ast.unparse(one.target)
            lines.append(_entry(f"{field}: {ast.unparse(one.annotation)}", told.get(field, "")))
        elif isinstance(one, ast.FunctionDef) and one.returns and one.decorator_list:
            lines.append(_entry(f"{one.name}: {ast.unparse(one.returns)}", ast.get_docstring(one) or ""))
    return "\n".join(lines)


def _classes() -> list[str]:
    """Return the names of the public classes that are no errors."""
    found = (name for name in gemmlab.__all__ if inspect.isclass(getattr(gemmlab, name)))
    return [name for name in found if not issubclass(getattr(gemmlab, name), Exception)]


def signature(name: str, call: Callable[..., Any]) -> str:
    """Return a call as it is declared, on one line if it fits, else with one line for each parameter."""
    found = inspect.signature(call)
    words = list[str]()
    for one in found.parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        star = "*" if one.kind is one.VAR_POSITIONAL else ""
        default = "" if one.default is one.empty else f" = {one.default!r}"
        words.append(f"{star}{one.name}: {_annotation(call, one.annotation)}{default}")
    end = f") -> {_annotation(call, str(found.return_annotation))}"
    return _fitted(name, words, end)


def _fitted(name: str, words: Sequence[str], end: str) -> str:
    line = f"{name}({', '.join(words)}{end}"
    return line if len(line) <= WIDEST else "\n".join([f"{name}(", *(f"    {word}," for word in words), end])


def _contents(calls: Sequence[str]) -> str:
    calls = [*(f"gemmlab.{name}" for name in calls), *(f"gemmlab.blas.{name}" for name in blas.__all__)]
    calls += [f"gemmlab.distributed.{name}" for name in DISTRIBUTED]
    links = [*(f"[`{name}`](#{name.replace('.', '').lower()})" for name in calls), "[errors](#errors)"]
    return fill(", ".join(links), 130, break_long_words=False, break_on_hyphens=False)


def _call(name: str, call: Callable[..., Any], level: str = "##") -> list[str]:
    return [f"{level} {name}", f"```py\n{signature(name, call)}\n```", inspect.getdoc(call) or ""]


def _annotation(call: Callable[..., Any], text: str) -> str:
    """Return an annotation in which names of union types, such as `Sizes`, are replaced by the unions."""
    known: Mapping[str, Any] = inspect.unwrap(call).__globals__

    def spelled(found: re.Match[str]) -> str:
        meant = known.get(found[0])
        return re.sub(r"\b(?:\w+\.)+(?=\w)", "", str(meant)) if isinstance(meant, UnionType) else found[0]

    return re.sub(r"\w+", spelled, text)


def _class(given: Any) -> str:
    """Return the section on a result's class: its public fields, properties and methods."""
    told = _attribute_docs(inspect.getsource(given), of_class=True)
    lines = [_entry(f"{one.name}: {one.type}", told.get(one.name, "")) for one in fields(given)]
    table = vars(Tabular) if issubclass(given, Tabular) else {}
    for name, member in {**table, **vars(given)}.items():
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            returned = inspect.signature(member.fget).return_annotation if member.fget else ""
            lines.append(_entry(f"{name}: {returned}", inspect.getdoc(member) or ""))
        elif inspect.isfunction(member):
            lines.append(_entry(signature(name, member), inspect.getdoc(member) or ""))
    return "\n\n".join([f"### {given.__name__}", inspect.getdoc(given) or "", "\n".join(lines)])


def _entry(code: str, text: str) -> str:
    return f"- `{code}`" + (f": {indent(text, '  ').strip()}" if text else "")


def _attribute_docs(source: str, *, of_class: bool = False) -> dict[str, str]:
    """Return the docstrings of annotated names in a module's source, or with `of_class` in a class's, by name."""
    body: Sequence[ast.stmt] = ast.parse(source).body
    if of_class and isinstance(body[0], ast.ClassDef):
        body = body[0].body
    found: dict[str, str] = {}
    for one, after in pairwise(body):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(after, ast.Expr):
            text = after.value.value if isinstance(after.value, ast.Constant) else None
            if isinstance(text, str):
                found[one.target.id] = inspect.cleandoc(text)
    return found


def _errors() -> str:
    """Return a table of the public exceptions, the base of all first."""
    public = (getattr(gemmlab, name) for name in gemmlab.__all__)
    errors = [one for one in public if isinstance(one, type) and issubclass(one, gemmlab.GemmlabError)]
    errors.sort(key=lambda one: (len(one.__mro__) > len(gemmlab.GemmlabError.__mro__), one.__name__))
    lines = [
        [
            f"`{one.__name__}`", ", ".join(f"`{base.__name__}`" for base in one.__bases__), str(one.exit_code),
            " ".join((inspect.getdoc(one) or "").split()),
        ]
        for one in errors
    ]  # fmt: skip
    return markdown_table(["", "is a", "exit code", "meaning"], lines, ["is a", "meaning"])


BLOCKS: Mapping[str, Callable[[], str]] = {"api": api_block}
