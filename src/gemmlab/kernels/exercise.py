"""Exercises of CUDA rungs: a kernel to start from, a task, and statements about the counters of a right solution.

An exercise is one file, `exercises/RUNG.cu`. Its opening comment has the task and the checks, and `gemmlab new
--exercise RUNG` writes the rest:

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
from gemmlab.kernels.choice_exercise import choice_ids
from gemmlab.kernels.claims import OF_EXERCISE, Expectation
from gemmlab.kernels.cuda_file.fact_reader import FactReader
from gemmlab.kernels.cuda_file.header import HeaderValues, Statement, read_text
from gemmlab.kernels.exercise_words import NO_EXERCISE, SOLVED_WHEN
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.names import problem_names
from gemmlab.ops.catalog import find_op

_FOLDER = Path(__file__).parent / "exercises"
_OPENING = re.compile(r"/\*[ \t]*exercise[ \t]*\n(.*?)\*/\s*", re.DOTALL)
_WIDTH = 115


@dataclass(frozen=True, slots=True)
class Exercise:
    """The exercise of one CUDA rung."""

    rung: str
    task: str
    start: str
    """The text of the file to start from, whose kernel is called `my_kernel`."""
    expect: tuple[Any, ...]
    """Statements that the counters of a solution must meet: texts, or tables with `that`, `shape` and `says`."""
    untried: tuple[str, ...] = ()
    """Contents of operands that a solution is not tried with (`Kernel.untried`)."""

    @property
    def file_name(self) -> str:
        """The name of the file that is written if the user gives none."""
        return f"my_{self.rung}.cu"

    def text(self, kernel: str) -> str:
        """Return the text of the file to start from, after a comment with the task and the criteria.

        Its kernel is called `kernel`.
        """
        task = wrap(f"Exercise for {self.rung}. {self.task}", _WIDTH, break_on_hyphens=False)
        lines = "\n".join(f"// {line}" for line in [*task, SOLVED_WHEN, *(f"  - {one}" for one in self.criteria())])
        return f"{lines}\n\n{self.start.replace('my_kernel', kernel)}"

    def criteria(self) -> list[str]:
        """Return what the counters must show, in words and numbers: `barriers: at most 80 at 128x64x128`.

        If a solution is not tried with all contents of operands, the first line says so.
        """
        from gemmlab.kernels.catalog import find_kernel

        op = find_op(find_kernel(self.rung).op)
        found = [f"numbers: of usual sizes; {' and '.join(self.untried)} ones are not tried"] if self.untried else []
        for one in self.expectations(op.name):
            (problem,) = op.parse_sizes(one.shape)
            constants = problem_names(op.scalars(problem))
            found += [f"{criterion.request(constants)} at {one.shape}" for criterion in one.criteria(constants)]
        return found

    def expectations(self, op: str) -> tuple[Expectation, ...]:
        """Return the statements that the counters of a solution must meet, for a kernel of the operation `op`."""
        stated = [one if isinstance(one, dict) else {"that": one} for one in self.expect]
        plain = [{key: value for key, value in one.items() if key != "says"} for one in stated]
        statement = Statement(f"{OF_EXERCISE}{self.rung}", {"expect": plain})
        checks = FactReader(HeaderValues(statement.origin, (statement,))).expect(op, {})
        return tuple(
            replace(check, where=statement.origin, hidden=True, says=one.get("says", ""))
            for check, one in zip(checks, stated, strict=True)
        )


def exercise_ids() -> list[str]:
    """Return the ids of all rungs whose exercise is a CUDA kernel (`choice_ids` has those of the others)."""
    return sorted(path.stem for path in _FOLDER.glob("*.cu"))


def find_exercise(rung: str) -> Exercise:
    """Return the exercise of a CUDA rung. If there is none, `UsageError` says why, or gives the nearest names."""
    if rung not in exercise_ids():
        if why := NO_EXERCISE.get(rung):
            raise UsageError(f"no exercise for {rung}: {why}")
        known = sorted([*exercise_ids(), *choice_ids()])
        raise UsageError(f"no exercise for {rung!r}; {nearest(rung, known, 'rungs with one')}")
    path = _FOLDER / f"{rung}.cu"
    text = read_text(path)
    opening = _OPENING.match(text)
    if opening is None:
        raise UsageError(f"{path}: no `/* exercise` comment at its beginning")
    stated = tomllib.loads(opening[1])
    return Exercise(
        rung, stated["task"], text[opening.end() :], tuple(stated["expect"]), tuple(stated.get("untried", ()))
    )


def with_checks(kernel: Kernel, rung: str) -> Kernel:
    """Return the kernel as a solution of the exercise of `rung`: it has the exercise's checks besides its own.

    Contents of operands that the exercise leaves out are not tried. Raises `UsageError` for a rung without an exercise.
    """
    exercise = find_exercise(rung)
    every = (*kernel.expect, *exercise.expectations(kernel.op))
    return replace(kernel, expect=every, untried=exercise.untried, exercise=rung)
