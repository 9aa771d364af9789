"""The division of a CPU kernel's result among threads, as `gemmlab explain threaded` shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gemmlab.codegen.runtime import MOST_THREADS
from gemmlab.codegen.thread_division import ThreadDivision
from gemmlab.core.errors import UsageError
from gemmlab.core.hardware import physical_cores
from gemmlab.core.tabular import Row, Tabular
from gemmlab.core.words import counted
from gemmlab.kernels.catalog import all_kernels
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.catalog import find_op
from gemmlab.ops.gemm_problem import size_label

USUAL_SIZES = "1024"


@dataclass(frozen=True, slots=True)
class Divided(Tabular):
    """The division of one product among threads."""

    kernel: str
    size: str
    config: Mapping[str, int]
    most_threads: int
    """The number of threads to divide among: the requested one, or that of the physical cores."""
    division: ThreadDivision

    @property
    def lines(self) -> list[str]:
        """The division in sentences, one for each line of text."""
        found = self.division
        jobs = len(found.rectangles)
        if not jobs:
            return ["The result is empty."]
        if jobs == 1:
            why = f": for so little work {self.most_threads} threads are not faster" if self.most_threads > 1 else ""
            return [f"One thread computes all of C{why}."]
        jobs_line = (
            f"{found.threads} of {counted(self.most_threads, 'thread')} take {jobs} jobs, {found.down} down and "
            f"{found.across} across: rectangles of {found.rows} x {found.cols}, cut at the edges of C. A thread that "
            "is free takes the next job."
        )
        if found.shared_block is None:
            return [jobs_line, "Each thread packs the part of B that it reads."]
        rows, cols = found.shared_block
        packed = (
            f"All threads pack B together, {rows} x {cols} at a time, while they multiply by the block before; each "
            "block of rows adds to the same rectangles."
        )
        return [jobs_line, packed]

    def rows(self) -> list[Row]:
        """Return a row for each job: its number, its first row and column of C, and its numbers of rows and columns."""
        return [{"job": job, **asdict(one)} for job, one in enumerate(self.division.rectangles)]

    def to_json(self) -> dict[str, Any]:
        """Return JSON values in the form of `explain`'s."""
        found = self.division
        return {"kernels": [{
            "kernel": self.kernel, "size": self.size, "config": dict(self.config),
            "division": {
                "most_threads": self.most_threads, "threads": found.threads, "jobs_down": found.down,
                "jobs_across": found.across, "rows": found.rows, "cols": found.cols,
                "shared_block": None if found.shared_block is None else list(found.shared_block),
                "jobs": self.rows(),
            },
        }]}  # fmt: skip


def explain_division(kernel: Kernel, config: Mapping[str, int], sizes: str, threads: int | None) -> Divided:
    """Return the division of a result among `threads` threads, by default one a physical core.

    `sizes` is the text of one size; if it is empty, the size is `USUAL_SIZES`. Raises `UsageError` for a kernel whose
    division is unknown, for several sizes, and for a number of threads out of range.
    """
    if kernel.divide is None:
        able = ", ".join(one.id for one in all_kernels() if one.divide is not None)
        raise UsageError(
            f"{kernel.id} is a kernel for {kernel.device}; explain takes kernels for GPUs, and for a CPU those whose "
            f"division among threads it can show: {able}. --pictures draws {kernel.id}"
        )
    most = physical_cores() if threads is None else threads
    if not 1 <= most <= MOST_THREADS:
        raise UsageError(f"--threads {most}: from 1 to {MOST_THREADS}")
    problems = find_op(kernel.op).parse_sizes(sizes or USUAL_SIZES)
    if len(problems) != 1:
        raise UsageError(f"--sizes {sizes}: one size is explained at a time")
    chosen = kernel.configure(config)
    return Divided(kernel.id, size_label(problems[0]), chosen, most, kernel.divide(chosen, problems[0], most))
