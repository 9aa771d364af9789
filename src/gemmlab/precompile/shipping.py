"""The machine code in a wheel: all code of the GPU ladders that `gemmlab check` and `climb` run on the emulator.

That is every rung in its default configuration, in all operand layouts, and the configurations that the expectations in
its file (`expect`) name.

The build (`hatch_build.py`) runs `python -m gemmlab.precompile.shipping FOLDER [KERNEL]...` in an environment that has
the compiler and the disassembler.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from gemmlab.core.errors import GemmlabError
from gemmlab.core.hardware import usable_cpus
from gemmlab.devices.emulated import ARCHITECTURES
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.precompile.cubins import Job, jobs, run_all
from gemmlab.toolchain.build_cuda import ship

_PROGRESS_EVERY = 10


def ship_all(
    folder: Path, kernels: Sequence[str] = (), progress: Callable[[int, int], None] = lambda _done, _all: None
) -> list[Path]:
    """Compile the kernels (by default all) for every emulated architecture; return the files made under `folder`.

    `progress` is called with the number of instances done and the number of all, first with 0 done.

    Raises the first error of an instance, such as a `CompileError`; it is a `NoCompilerError` if the compiler or the
    disassembler is missing.
    """
    apart = shipped_jobs(kernels)
    made = list[Path]()
    progress(0, len(apart))
    for _, outcome in run_all(apart, len(usable_cpus()), partial(_ship, folder)):
        if isinstance(outcome, GemmlabError):
            raise outcome
        made.append(outcome)
        progress(len(made), len(apart))
    return made


def shipped_jobs(kernels: Sequence[str] = (), archs: Sequence[str] = ARCHITECTURES) -> list[Job]:
    """Return the jobs for a wheel with the kernels (by default all), one for each instance and architecture."""
    planned, _ = jobs(kernels, archs, {})
    planned += _of_claims(dict.fromkeys((job.origin, job.program.target) for job in planned))
    return [*{(job.program.target, job.program.entry): job for job in planned}.values()]


def _of_claims(where: Iterable[tuple[str, str]]) -> Iterator[Job]:
    for name, arch in where:
        kernel = find_kernel(name)
        op = find_op(kernel.op)
        for stated in kernel.expect:
            (problem,) = op.parse_sizes(stated.shape)
            instance = kernel.instantiate(kernel.configure(stated.config), op.scalars(problem))
            yield Job(kernel.id, instance, kernel.program(instance, arch), kernel.id)


def _ship(folder: Path, job: Job) -> Path:
    return ship(job.program, folder)


def _tell(done: int, planned: int) -> None:
    """Print the progress for the build's output: at the beginning, after every `_PROGRESS_EVERY` instances and at the
    end.
    """
    if done == 0:
        _say(f"{planned} instances to compile, or to read from the cache")
    elif done % _PROGRESS_EVERY == 0 or done == planned:
        _say(f"{done} of {planned} done")


def _say(text: str) -> None:
    print(f"Machine code of the GPU kernels: {text}", flush=True)  # noqa: T201 - for the build


if __name__ == "__main__":
    try:
        files = ship_all(Path(sys.argv[1]), sys.argv[2:], _tell)
    except GemmlabError as error:
        sys.exit(str(error))
    _say(f"{len(files)} instances, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")
