"""The machine code that goes into a wheel: what `gemmlab check` and `climb` run of the GPU ladders on the emulator.

That is every rung in its defaults, in all operand layouts, and the configurations that the claims in its file compare
them with.

The build (`hatch_build.py`) runs `python -m gemmlab.measure.shipping FOLDER [KERNEL]...` in an environment that has the
compiler and the disassembler.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from gemmlab.core.errors import GemmlabError
from gemmlab.core.hardware import usable_cpus
from gemmlab.devices.emulated import ARCHITECTURES
from gemmlab.kernels.catalog import find_kernel
from gemmlab.measure.precompile import Job, jobs, run_all
from gemmlab.ops.catalog import find_op
from gemmlab.toolchain.build_cuda import ship


def ship_all(folder: Path, kernels: Sequence[str] = ()) -> list[Path]:
    """Compile the kernels, by default all, for every architecture that is emulated; the files made under `folder`.

    Raises the first `CompileError`, which is a `NoCompilerError` where the compiler or the disassembler is missing.
    """
    planned, _ = jobs(kernels, ARCHITECTURES, {})
    planned += _of_claims(dict.fromkeys((job.origin, job.program.target) for job in planned))
    apart = {(job.program.target, job.program.entry): job for job in planned}
    made = [outcome for _, outcome in run_all([*apart.values()], len(usable_cpus()), partial(_ship, folder))]
    for outcome in made:
        if isinstance(outcome, GemmlabError):
            raise outcome
    return [path for path in made if isinstance(path, Path)]


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


if __name__ == "__main__":
    try:
        files = ship_all(Path(sys.argv[1]), sys.argv[2:])
    except GemmlabError as error:
        sys.exit(str(error))
    print(f"{len(files)} instances, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")  # noqa: T201 - for the build
