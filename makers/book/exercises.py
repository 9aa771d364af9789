"""The section on a rung's exercise on the rung's page: the task, its criteria, the commands, the file to start from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from blocks.copy_helpers import HEADERS
from gemmlab.kernels.choice_exercise import SOLVED_WHEN_COUNTED, ChoiceExercise, choice_ids, find_choice
from gemmlab.kernels.exercise import exercise_ids, find_exercise
from gemmlab.kernels.exercise_words import NO_EXERCISE, SOLVED_WHEN
from gemmlab.kernels.kernel import Kernel


def exercise_part(kernel: Kernel) -> str:
    """Return the section. For a rung without an exercise it gives the reason; without a reason it is empty."""
    if kernel.id in choice_ids():
        return _choice(find_choice(kernel.id))
    if kernel.id not in exercise_ids():
        return f"## Exercise\n\nNone. {NO_EXERCISE[kernel.id]}" if kernel.id in NO_EXERCISE else ""
    exercise = find_exercise(kernel.id)
    task, criteria = " ".join(exercise.task.split()), _listed(exercise.criteria())
    return f"""## Exercise

{task}{_helpers(f"{task} {exercise.start}")}

{SOLVED_WHEN}

{criteria}

```sh
gemmlab new --exercise {kernel.id}
gemmlab check {exercise.file_name} --device emulated
```

The first command writes the file to start from. The second one checks the results of your solution and, by counters
that the emulator counts, that it does what the task asks for. The file as it is written fails.

<details>
<summary>The file to start from</summary>

```cuda
{exercise.start.strip().replace("my_kernel", f"my_{kernel.id}")}
```

</details>"""


def _helpers(text: str) -> str:
    """Return a sentence with a link to the signatures of helpers if `text` names one of their headers; else empty."""
    named = any(header in text for header in HEADERS)
    return " The [helpers](exercises.md#helpers-for-copies) have their signatures in one table." if named else ""


def _choice(exercise: ChoiceExercise) -> str:
    path = Path(exercise.file_name)
    steps = [f"gemmlab new --exercise {exercise.rung}", exercise.command(path), f"gemmlab check {path}"]
    solved = SOLVED_WHEN if exercise.computes else SOLVED_WHEN_COUNTED
    return f"""## Exercise

{" ".join(exercise.task.split())}

{solved}

{_listed(exercise.requests())}

```sh
{chr(10).join(step for step in steps if step)}
```

The first command writes the file to start from{", the second one shows its misses" if exercise.l1 else ""}. The last
one judges your values. The file as it is written fails:

```toml
{exercise.lines().strip()}
```"""


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
