"""Exercises of CPU rungs: choose the sizes of blocks; simulated cache misses decide whether they are right.

An exercise is one file, `exercises/RUNG.toml`, with the task, the caches, the blocks to start from and the checks.
`gemmlab new --exercise RUNG` writes a file without the checks, `gemmlab check` tests its solution:

    exercise = "cache_block"

    [blocks]
    KC = 64
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from gemmlab.core.errors import UsageError
from gemmlab.core.words import nearest
from gemmlab.kernels.cuda_file.header import read_text

if TYPE_CHECKING:
    from gemmlab.kernels.kernel import Kernel

SUFFIX = ".toml"
_FOLDER = Path(__file__).parent / "exercises"
_WIDTH = 115
_KEYS = {"exercise", "blocks"}


@dataclass(frozen=True, slots=True)
class BlockingExercise:
    """The exercise of one rung of a CPU's ladder."""

    rung: str
    task: str
    size: str
    l1: str
    """Size and ways of the simulated first cache, as `8K/8`."""
    l2: str
    start: Mapping[str, int]
    """The blocks to start from, by parameter."""
    expect: tuple[str, ...]
    """Statements on the row of `gemmlab cache` for a solution."""

    @property
    def file_name(self) -> str:
        """The default name of the file that is written."""
        return f"my_{self.rung}{SUFFIX}"

    def command(self, solution: Path) -> str:
        """Return the command that shows the figures of a solution's blocks."""
        return f"gemmlab cache {solution} --sizes {self.size} --l1 {self.l1} --l2 {self.l2}"

    def text(self) -> str:
        """Return the file to start from, with the task in front."""
        task = "\n".join(
            f"# {line}" for line in wrap(f"Exercise for {self.rung}. {self.task}", _WIDTH, break_on_hyphens=False)
        )
        blocks = "\n".join(f"{name} = {value}" for name, value in self.start.items())
        return f'{task}\n\nexercise = "{self.rung}"\n\n[blocks]\n{blocks}\n'


def blocking_ids() -> list[str]:
    """Return the ids of all rungs that have an exercise about their blocks."""
    return sorted(path.stem for path in _FOLDER.glob(f"*{SUFFIX}"))


def find_blocking(rung: str) -> BlockingExercise:
    """Return the exercise of a rung; `UsageError` with the nearest names if there is none."""
    if rung not in blocking_ids():
        raise UsageError(f"no exercise for {rung!r}; {nearest(rung, blocking_ids(), 'rungs with one')}")
    stated = tomllib.loads(read_text(_FOLDER / f"{rung}{SUFFIX}"))
    return BlockingExercise(
        rung, stated["task"], stated["size"], stated["l1"], stated["l2"], stated["start"], tuple(stated["expect"])
    )


def read_solution(path: Path) -> tuple[BlockingExercise, dict[str, int]]:
    """Return the exercise that a file is a solution of, and its blocks.

    Raises `UsageError`, which names the file, if it cannot be read or is no solution.
    """
    try:
        stated: dict[str, Any] = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from error
    rung, blocks = stated.get("exercise"), stated.get("blocks")
    if set(stated) != _KEYS or not isinstance(rung, str) or not isinstance(blocks, dict):
        raise UsageError(f'{path}: a solution has `exercise = "RUNG"` and a table [blocks], nothing else')
    exercise = find_blocking(rung)
    for name, value in blocks.items():
        if name not in exercise.start or type(value) is not int or value < 1:
            raise UsageError(f"{path}: {name} = {value!r}; the blocks are {', '.join(exercise.start)}, all at least 1")
    return exercise, {**exercise.start, **blocks}


def kernel_with_blocks(path: Path) -> tuple[BlockingExercise, Kernel]:
    """Return the exercise that a file is a solution of, and its kernel with the solution's blocks as defaults.

    Raises `UsageError` as `read_solution`, and for blocks that the kernel does not take.
    """
    from gemmlab.kernels.catalog import find_kernel

    exercise, blocks = read_solution(path)
    kernel = find_kernel(exercise.rung)
    return exercise, replace(kernel, params=kernel.configure(blocks))
