"""The exercise of a rung, as its page shows it: the task, its criteria, the commands, the file to start from."""

from __future__ import annotations

from pathlib import Path

from gemmlab.kernels.blocking_exercise import BlockingExercise, blocking_ids, find_blocking
from gemmlab.kernels.exercise import SOLVED_WHEN, exercise_ids, find_exercise
from gemmlab.kernels.kernel import Kernel


def exercise_part(kernel: Kernel) -> str:
    """Return the section; empty for a rung without an exercise."""
    if kernel.id in blocking_ids():
        return _blocking(find_blocking(kernel.id))
    if kernel.id not in exercise_ids():
        return ""
    exercise = find_exercise(kernel.id)
    task, criteria = " ".join(exercise.task.split()), "\n".join(f"- {one}" for one in exercise.criteria())
    return f"""## Exercise

{task}

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


def _blocking(exercise: BlockingExercise) -> str:
    return f"""## Exercise

{" ".join(exercise.task.split())}

```sh
gemmlab new --exercise {exercise.rung}
{exercise.command(Path(exercise.file_name))}
gemmlab check {exercise.file_name}
```

The first command writes the file to start from, the second one shows the figures of its blocks. The third one checks
the results with your blocks, and the misses of the simulated caches. The file as it is written fails."""
