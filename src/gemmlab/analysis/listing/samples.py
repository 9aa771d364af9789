"""Samples of a profile by instruction, from the source page that Nsight Compute prints."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gemmlab.analysis.listing.code import Code
from gemmlab.core.errors import UsageError
from gemmlab.observe.ncu_program import find_ncu, run

_HEADINGS = ("Warp Stall Sampling (All Samples)", "# Samples", "Samples", "smsp__pcsamp_sample_count")
"""Headings of the column of samples in different versions of ncu."""
REPORT = ".ncu-rep"
HOW = "ncu --import FILE.ncu-rep --page source --csv"


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of one profiled launch."""

    origin: str
    """Name of the profile's file."""
    rows: tuple[tuple[str, float], ...] = field(repr=False)
    """(instruction text, samples) in the order of addresses."""


def read_samples(path: str | os.PathLike[str], ncu: str = "ncu") -> tuple[Samples, ...]:
    """Read a profile; return one `Samples` for each launch that has any.

    The file is a source page as CSV (`HOW`), or a report (`.ncu-rep`), whose source page the program `ncu` prints.
    Raises `UsageError` if it cannot be read or has no samples, and `ProfilerError` for a report if Nsight Compute is
    not installed or cannot read it.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig") if file.suffix != REPORT else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the profile {path}: {error}") from error
    if file.suffix == REPORT:
        if not file.is_file():
            raise UsageError(f"cannot read the profile {path}: there is no such file")
        text = run([find_ncu(ncu), "--import", str(file), "--page", "source", "--csv"])
    launches: list[list[tuple[str, float]]] = []
    source, count = -1, -1
    for row in csv.reader(line for line in text.splitlines() if not line.startswith("==")):
        names = [cell.strip() for cell in row]
        if "Source" in names and any(name in names for name in _HEADINGS):
            source = names.index("Source")
            count = names.index(next(name for name in _HEADINGS if name in names))
            launches.append([])
        elif launches and len(row) > max(source, count):
            try:
                launches[-1].append((" ".join(row[source].split()), float(row[count].replace(",", "") or 0)))
            except ValueError:
                continue
    if not any(launches):
        raise UsageError(f"{path} has no column of samples by instruction; `{HOW}` prints one")
    return tuple(Samples(file.name, tuple(found)) for found in launches if found)


def by_address(samples: Samples, code: Code) -> Mapping[int, float]:
    """Return the number of samples by instruction address; instructions without samples are left out.

    Raises `UsageError` if the profile has other opcodes than `code`, or fewer instructions.
    """
    ours = [row.instruction for row in code.rows]
    for place, (i, (text, _)) in enumerate(zip(ours, samples.rows, strict=False)):
        words = [word for word in text.split() if not word.startswith("@")]
        if not words or words[0].partition(".")[0] != i.opcode:
            raise UsageError(f"{samples.origin} is a profile of other code than {code.title} for {code.arch}: its "
                             f"instruction {place} is {text!r}, here {i.text!r}")  # fmt: skip
    if len(samples.rows) < len(ours):
        raise UsageError(f"{samples.origin} is a profile of other code than {code.title} for {code.arch}: it has "
                         f"{len(samples.rows)} instructions, not {len(ours)}")  # fmt: skip
    return {i.address: count for i, (_, count) in zip(ours, samples.rows, strict=False) if count}


def samples_for(found: Sequence[Samples], code: Code) -> Samples | None:
    """Return the first of `found` that `by_address` accepts for this code; `None` if there is none."""
    for one in found:
        try:
            by_address(one, code)
        except UsageError:
            continue
        return one
    return None
