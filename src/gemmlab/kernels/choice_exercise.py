"""Exercises of CPU rungs: choose a few values, judged by figures that follow from them on any machine.

An exercise is one file, `exercises/RUNG.toml`, with the task, the values to start from and the criteria. `gemmlab new
--exercise RUNG` writes a file with one table of values, which the user changes; `gemmlab check` judges it:

    exercise = "cache_block"

    [blocks]
    KC = 64
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from gemmlab.core.criteria import Criterion, criteria
from gemmlab.core.errors import UsageError
from gemmlab.core.expr import parse
from gemmlab.core.words import nearest, shown
from gemmlab.kernels.cuda_file.header import read_text
from gemmlab.kernels.exercise_words import SOLVED_WHEN

if TYPE_CHECKING:
    from gemmlab.kernels.kernel import Kernel

SUFFIX = ".toml"
_FOLDER = Path(__file__).parent / "exercises"
_WIDTH = 115
Chosen = Mapping[str, int | str]
"""The values of a solution by name: whole numbers, or one of a few words."""


@dataclass(frozen=True, slots=True)
class ChoiceExercise:
    """The exercise of one rung of a CPU's ladder."""

    rung: str
    task: str
    measure: str
    """Name of the set of figures by which a solution is judged (`instruments.choice_figures`)."""
    table: str
    """Name of the table in a solution: `blocks`, `sizes`, ..."""
    start: Chosen
    """The values to start from."""
    expect: tuple[Mapping[str, str], ...]
    """The criteria that a solution must meet, as tables: `that` is a condition on its figures, as `l1_misses <= 70`;
    `says` has the figure in words (optional).
    """
    size: str = ""
    """The problem for which figures are computed, in the size grammar of the operation; `{NAME}` stands for a chosen
    value.
    """
    config: Mapping[str, int] = field(default_factory=dict)
    """Values of parameters of the kernel that are not to be chosen."""
    l1: str = ""
    """Size and ways of the simulated L1 cache, as `8K/8`; empty if caches are not simulated."""
    l2: str = ""
    """Size and ways of the simulated L2 cache, as `64K/8`; empty if caches are not simulated."""
    threads: int = 1
    least: int = 1
    """The least whole number that may be chosen."""
    most: int = 65536
    """The largest whole number that may be chosen."""
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The words that may be chosen, by name of the value; values that are not named here are whole numbers."""
    computes: bool = True
    """True if the kernel's results are checked with the chosen values, too."""

    @property
    def file_name(self) -> str:
        """The name of the file that is written if the user gives none."""
        return f"my_{self.rung}{SUFFIX}"

    def command(self, solution: Path) -> str:
        """Return the command that shows the cache misses of a solution; empty if caches are not simulated."""
        return f"gemmlab cache {solution}" if self.l1 else ""

    def lines(self) -> str:
        """Return the text of the file to start from, without the comment that states the task."""
        values = "\n".join(f"{name} = {_toml(value)}" for name, value in self.start.items())
        return f'exercise = "{self.rung}"\n\n[{self.table}]\n{values}\n'

    def text(self) -> str:
        """Return the text of the file to start from, which begins with a comment: the task and the criteria."""
        task = wrap(f"Exercise for {self.rung}. {self.task}", _WIDTH, break_on_hyphens=False)
        shown = [
            *task,
            SOLVED_WHEN if self.computes else SOLVED_WHEN_COUNTED,
            *(f"  - {one}" for one in self.requests()),
        ]
        return "\n".join(f"# {line}" for line in shown) + f"\n\n{self.lines()}"

    def criteria(self) -> list[Criterion]:
        """Return the criteria that the figures of a solution must meet."""
        return [one for each in self.expect for one in criteria(parse(each["that"]), frozenset(), each.get("says", ""))]

    def requests(self) -> list[str]:
        """Return a line for each criterion, in words and numbers."""
        return [one.request({}) for one in self.criteria()]

    def size_for(self, chosen: Chosen) -> str:
        """Return the problem (`size`) with the chosen values filled in."""
        return self.size.format(**chosen)


SOLVED_WHEN_COUNTED = "Solved when gemmlab check finds:"


def _toml(value: int | str) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def choice_ids() -> list[str]:
    """Return the ids of all rungs whose exercise is a choice of values."""
    return sorted(path.stem for path in _FOLDER.glob(f"*{SUFFIX}"))


def find_choice(rung: str) -> ChoiceExercise:
    """Return the exercise of a rung. If it has none of this kind, `UsageError` gives the nearest names."""
    if rung not in choice_ids():
        raise UsageError(f"no exercise for {rung!r}; {nearest(rung, choice_ids(), 'rungs with one')}")
    stated = tomllib.loads(read_text(_FOLDER / f"{rung}{SUFFIX}"))
    stated["words"] = {name: tuple(words) for name, words in stated.get("words", {}).items()}
    return ChoiceExercise(rung, **{**stated, "expect": tuple(stated["expect"])})


def read_solution(path: Path) -> tuple[ChoiceExercise, dict[str, int | str]]:
    """Return the exercise that a file solves, and all values: those in the file, and those to start from for the rest.

    Raises `UsageError`, with the file, for a file that cannot be read or that is no such solution, for an unknown rung,
    and for values that may not be chosen.
    """
    text = read_text(path)
    try:
        stated: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Python refuses decimal numbers of thousands of digits with a plain `ValueError`.
        raise UsageError(f"{path}: {error}") from error
    rung = stated.pop("exercise", None)
    if not isinstance(rung, str):
        raise UsageError(f'{path}: a solution begins with `exercise = "RUNG"`, as gemmlab new --exercise writes it')
    try:
        exercise = find_choice(rung)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    values = stated.get(exercise.table)
    if set(stated) != {exercise.table} or not isinstance(values, dict):
        raise UsageError(f'{path}: a solution has `exercise = "{rung}"` and a table [{exercise.table}], nothing else')
    for name, value in values.items():
        if name not in exercise.start:
            raise UsageError(f"{path}: there is no {name} to choose; {nearest(name, exercise.start, 'to be chosen')}")
        words = exercise.words.get(name)
        if words and value not in words:
            raise UsageError(f"{path}: {name} = {shown(value)} is none of {', '.join(words)}")
        if not words and (type(value) is not int or not exercise.least <= value <= exercise.most):
            known = f"from {exercise.least} to {exercise.most}"
            raise UsageError(f"{path}: {name} = {shown(value)} is no whole number {known}")
    return exercise, {**exercise.start, **values}


def kernel_with_values(path: Path) -> tuple[ChoiceExercise, Kernel, dict[str, int | str]]:
    """Return the exercise that a file solves, the rung's kernel, and all values (`read_solution`).

    The values that are parameters of the kernel are its defaults, as are those of `ChoiceExercise.config`. Raises
    `UsageError` as `read_solution`, and for values that the kernel does not take.
    """
    from gemmlab.kernels.catalog import find_kernel

    exercise, chosen = read_solution(path)
    kernel = find_kernel(exercise.rung)
    values = {name: value for name, value in chosen.items() if name in kernel.params and isinstance(value, int)}
    try:
        return exercise, replace(kernel, params=kernel.configure({**exercise.config, **values})), chosen
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
