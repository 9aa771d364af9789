"""The exercises of rungs: a file to start from, a task, and statements about the counters of a right solution.

An exercise is one file, `exercises/RUNG.cu`. Its opening comment has the task and the checks, `gemmlab new --exercise
RUNG` writes the rest:

    /* exercise
    task = "Turn x and y."
    expect = ["global_store_sectors_per_request == 4"]
    */
    /* gemmlab
    exercise = "naive"
    ...

The written file does not have the checks: `exercise = "naive"` refers to them.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.core.words import nearest
from gemmlab.kernels.blocking_exercise import blocking_ids
from gemmlab.kernels.claims import OF_EXERCISE
from gemmlab.kernels.cuda_file.fact_reader import FactReader
from gemmlab.kernels.cuda_file.header import HeaderValues, Statement, read_text
from gemmlab.kernels.kernel import Kernel

_FOLDER = Path(__file__).parent / "exercises"
_OPENING = re.compile(r"/\*[ \t]*exercise[ \t]*\n(.*?)\*/\s*", re.DOTALL)
_WIDTH = 115


@dataclass(frozen=True, slots=True)
class Exercise:
    """The exercise of one rung."""

    rung: str
    task: str
    start: str
    """The file to start from, whose kernel is called `my_kernel`."""
    expect: tuple[Any, ...]
    """Statements that the counters of a solution must meet: texts, or tables with `that` and `shape`."""

    @property
    def file_name(self) -> str:
        """The default name of the file that is written."""
        return f"my_{self.rung}.cu"

    def text(self, kernel: str) -> str:
        """Return the file to start from, with the task in front, for a kernel of that name."""
        task = "\n".join(
            f"// {line}" for line in wrap(f"Exercise for {self.rung}. {self.task}", _WIDTH, break_on_hyphens=False)
        )
        return f"{task}\n\n{self.start.replace('my_kernel', kernel)}"


def exercise_ids() -> list[str]:
    """Return the ids of all rungs that have an exercise."""
    return sorted(path.stem for path in _FOLDER.glob("*.cu"))


def find_exercise(rung: str) -> Exercise:
    """Return the exercise of a rung; `UsageError` with the nearest names if there is none."""
    if rung not in exercise_ids():
        known = sorted([*exercise_ids(), *blocking_ids()])
        raise UsageError(f"no exercise for {rung!r}; {nearest(rung, known, 'rungs with one')}")
    path = _FOLDER / f"{rung}.cu"
    text = read_text(path)
    opening = _OPENING.match(text)
    if opening is None:
        raise UsageError(f"{path}: no `/* exercise` comment at its beginning")
    stated = tomllib.loads(opening[1])
    return Exercise(rung, stated["task"], text[opening.end() :], tuple(stated["expect"]))


def with_checks(kernel: Kernel, rung: str) -> Kernel:
    """Return the kernel with the checks of a rung's exercise added to its own statements.

    Raises `UsageError` for a rung without an exercise.
    """
    stated = Statement(f"{OF_EXERCISE}{rung}", {"expect": [*find_exercise(rung).expect]})
    checks = FactReader(HeaderValues(stated.origin, (stated,))).expect(kernel.op, {})
    return replace(kernel, expect=(*kernel.expect, *(replace(one, where=stated.origin, hidden=True) for one in checks)))
