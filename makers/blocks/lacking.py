"""List the things that a rung still lacks: facts in its file, its section of the docs, its records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from blocks.records import CPU, RESULTS, load
from gemmlab.core.precision import FLOAT32, TF32
from gemmlab.core.records import Record
from gemmlab.kernels.choice_exercise import choice_ids
from gemmlab.kernels.exercise import exercise_ids
from gemmlab.kernels.exercise_words import NO_EXERCISE
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.order import file_of
from gemmlab.kernels.rung_draft import OPEN, page_of, section_of
from gemmlab.observe.profile_reader import load_profiles

FEWEST_WORDS = 4
"""The least number of words in `source`: a language or a place, and a title."""
GEMM, PARTS = "h200/gemm.json", "h200/parts.json"
_LADDERS = {FLOAT32: GEMM, TF32: "h200/tf32.json"}
"""Precision -> the record of its rungs' times. All precisions that are not here, products of parts, share `PARTS`."""
_RECORDS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("gemm", "cpu"): {f"{CPU}/climb.json": "make results", f"{CPU}/cache.json": "make results"},
    ("gemm", "cuda"): {"emulated/counters.json": "make counts", GEMM: "make gpu-results",
                       "h200/ncu.json": "make gpu-results"},
    ("reduce", "cpu"): {},
    ("reduce", "cuda"): {"emulated/reduce.json": "make counts", "h200/reduce.json": "make gpu-results"},
    ("sums", "cuda"): {"emulated/sums.json": "make counts"},
}  # fmt: skip
"""Operation and device -> the records that a rung must be in, each with the command that makes it. Rungs that reduce on
a CPU are in none; sums along axes are timed only as the library call.
"""


@dataclass(frozen=True, slots=True)
class Lack:
    """One thing that a rung lacks."""

    rung: str
    what: str
    drafted: bool = False
    """True if `gemmlab new --rung` writes it: without it the pages cannot be made."""

    def __str__(self) -> str:
        return f"{self.rung}: {self.what}"


def lacking(kernel: Kernel) -> Iterator[Lack]:
    """Yield everything that a rung lacks; nothing for a finished one."""
    for what in (*_facts(kernel), *_records(kernel)):
        yield Lack(kernel.id, what)
    page = page_of(kernel)
    section = section_of(kernel, page.read_text(encoding="utf-8"))
    where = f"{page.parent.name}/{page.name}"
    if section is None:
        yield Lack(kernel.id, f"a section `## {kernel.id}` in {where}, as gemmlab new --rung drafts it", drafted=True)
        return
    if OPEN in section:
        yield Lack(kernel.id, f"text in its section of {where}: it still says {OPEN!r}")
    if (kernel.op, kernel.device) == ("gemm", "cuda"):
        if f"<!-- begin rung-{kernel.id} -->" not in section:
            yield Lack(kernel.id, f"the block `rung-{kernel.id}` in its section of {where}", drafted=True)
        if "```text\n" not in section:
            yield Lack(kernel.id, f"a picture (```text) in its section of {where}")


def _facts(kernel: Kernel) -> Iterator[str]:
    where = f"in {file_of(kernel)}"
    for key in ("summary", "idea", "source"):
        said = getattr(kernel, key)
        if not said or OPEN in said:
            yield f"`{key}` {where}"
    if OPEN not in kernel.source and (len(kernel.source.split()) < FEWEST_WORDS or kernel.source[0].isdigit()):
        yield f"`source` {where} that says where the technique comes from: {kernel.source!r}"
    if not kernel.idea.endswith("."):
        yield f"a whole sentence as `idea` {where}"
    if kernel.device == "cuda" and not kernel.expect:
        yield f"`expect` {where}: what its counters must show"
    if kernel.id not in {*exercise_ids(), *choice_ids(), *NO_EXERCISE}:
        suffix = "toml" if kernel.device == "cpu" else "cu"
        yield f"an exercise, kernels/exercises/{kernel.id}.{suffix}, or the reason for none (NO_EXERCISE)"


def _records(kernel: Kernel) -> Iterator[str]:
    for usual, command in _RECORDS[kernel.op, kernel.device].items():
        name = _LADDERS.get(kernel.precision, PARTS) if usual == GEMM else usual
        if kernel.id not in recorded(name):
            yield f"a result in benchmarks/results/{name}: {command}"


def recorded(name: str) -> set[str]:
    """Return the ids of the kernels in a record; none if there is no record."""
    if name.endswith("ncu.json"):
        path = RESULTS / name
        return {one.name for one in load_profiles(path).profiles} if path.exists() else set()
    record = load(name)
    return set() if record is None else _kernels(record)


def _kernels(record: Record) -> set[str]:
    return {re.sub(r"^kernel:|\[.*", "", result.contestant) for result in record.results}
