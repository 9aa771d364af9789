"""The block that lists all exercises: the rung, the task, the commands."""

from __future__ import annotations

from blocks.markdown import markdown_table
from gemmlab.kernels.catalog import all_kernels
from gemmlab.kernels.choice_exercise import choice_ids, find_choice
from gemmlab.kernels.exercise import exercise_ids, find_exercise
from gemmlab.kernels.exercise_words import NO_EXERCISE
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.rung_draft import page_of


def exercises() -> str:
    """Return a table of all rungs in order, each with its task, and the commands that write and check its exercise.

    A drafted rung without an exercise has no row.
    """
    rungs = [kernel for kernel in all_kernels() if kernel.step is not None and is_exercised(kernel.id)]
    rows = [[f"[`{one.id}`]({page_of(one).name}#{one.id})", _task(one), _commands(one)] for one in rungs]
    return markdown_table(["rung", "task", "commands"], rows, ["task", "commands"])


def is_exercised(rung: str) -> bool:
    """Return whether a rung has an exercise, or a reason for none."""
    return rung in NO_EXERCISE or rung in choice_ids() or rung in exercise_ids()


def _task(kernel: Kernel) -> str:
    if kernel.id in NO_EXERCISE:
        return f"None. {NO_EXERCISE[kernel.id]}"
    task = find_choice(kernel.id).task if kernel.id in choice_ids() else find_exercise(kernel.id).task
    return " ".join(task.split()).replace("|", "\\|")


def _commands(kernel: Kernel) -> str:
    if kernel.id in NO_EXERCISE:
        return ""
    chosen = kernel.id in choice_ids()
    file = find_choice(kernel.id).file_name if chosen else find_exercise(kernel.id).file_name
    device = "" if chosen else " --device emulated"
    return f"`gemmlab new --exercise {kernel.id}`, `gemmlab check {file}{device}`"


BLOCKS = {"exercises": exercises}
