"""Write the machine code of the tuned kernels into the package: `src/gemmlab/gpu_code`.

    python makers/gpu_code.py [--processes 2] [--stale]
    python makers/gpu_code.py --check

The archive has, for sm_90 and sm_90a, every kernel and configuration of the tables that the library chooses from, and
each rung in its default configuration. The main loops of a rung whose file says `written_anew` are written anew
(`precompile/archived_code.py`), in every layout. Programs that are not in the cache are compiled, which takes minutes
after an edit of a header that all share. With `--stale` only programs that the archive lacks, or has from other
sources, are made. `--check` compiles nothing: it prints these programs, and its exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from gemmlab.core.errors import GemmlabError
from gemmlab.core.program import Artifact
from gemmlab.dispatch.axis_rule import COMPILED
from gemmlab.dispatch.batch_choice import FILE as BATCHES
from gemmlab.dispatch.measurements import FILE as PRODUCTS
from gemmlab.dispatch.measurements import shipped_table
from gemmlab.dispatch.waves import PARTS
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.precompile.archived_code import archive_code
from gemmlab.precompile.cubins import Job, jobs, run_all
from gemmlab.toolchain import build_cuda, code_archive

ARCH = "sm_90"
LADDER_LAYOUT = "nn"
"""The operand layout of the ladder's records. A rung that lacks it is archived in all of its layouts."""


def wanted() -> list[Job]:
    """Return one job for each program of the archive."""
    every = (*_of_library(), *_of_axis_sums(), *_of_ladder())
    found = {(job.program.target, job.program.entry): job for job in every}
    return [*found.values()]


def _of_library() -> Iterator[Job]:
    for table in (PRODUCTS, BATCHES):
        for entry in shipped_table(table).entries:
            kernel = find_kernel(entry.kernel)
            parts = {PARTS: entry.parts[0]} if entry.parts else {}
            for instance in kernel.instances(kernel.configure({**entry.config, **parts})):
                yield Job(kernel.id, instance, kernel.program(instance, ARCH), kernel.id)


def _of_axis_sums() -> Iterator[Job]:
    for name, configs in COMPILED.items():
        for config in configs:
            yield from jobs([name], [ARCH], config)[0]


def _of_ladder() -> Iterator[Job]:
    for kernel in all_kernels():
        if kernel.device == "cuda":
            layouts = (LADDER_LAYOUT,) if LADDER_LAYOUT in kernel.layouts else ()
            every = jobs([kernel.id], [ARCH], {})[0]
            # Code that is written anew is only in this archive: no compiler makes it.
            anew = [job for job in every if job.program.written_anew]
            yield from anew or jobs([kernel.id], [ARCH], {}, layouts=layouts)[0]


def stale() -> list[str]:
    """Return the names of programs whose machine code is not in the archive or was made of other sources."""
    return sorted(f"{job.kernel} {job.program.entry}" for job in wanted() if build_cuda.archived(job.program) is None)


def _made(job: Job) -> code_archive.Made:
    return _member(job, archive_code(job.program))


def _kept_or_made(job: Job) -> code_archive.Made:
    kept = build_cuda.archived(job.program)
    return _member(job, kept) if kept else _made(job)


def _member(job: Job, code: Artifact) -> code_archive.Made:
    return code_archive.Made(build_cuda.source_of(job.program), code, lines=bool(job.program.written_anew))


def write(processes: int, *, only_stale: bool) -> None:
    made: dict[tuple[str, str], list[code_archive.Made]] = defaultdict(list)
    for job, outcome in run_all(wanted(), processes, _kept_or_made if only_stale else _made):
        if isinstance(outcome, GemmlabError):
            raise SystemExit(str(outcome))
        made[job.program.target, job.kernel].append(outcome)
    index: dict[str, dict[str, Any]] = defaultdict(dict)
    folder = code_archive.FOLDER
    for (target, kernel), members in sorted(made.items()):
        before = code_archive.codes_of(target, kernel)
        index[target][kernel] = code_archive.put(folder, target, kernel, members, before)
    for target, kernels in index.items():
        code_archive.write_index(folder, target, kernels)
    for file in folder.glob("*/*.xz"):
        if (file.parent.name, file.stem) not in made:
            file.unlink()
    files = [file for file in folder.rglob("*") if file.is_file()]
    print(f"{sum(map(len, made.values()))} instances, {sum(file.stat().st_size for file in files):,} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--stale", action="store_true")
    given = parser.parse_args()
    if given.check:
        names = stale()
        print("\n".join(names) or "the machine code is that of the sources")
        sys.exit(1 if names else 0)
    write(given.processes, only_stale=given.stale)
