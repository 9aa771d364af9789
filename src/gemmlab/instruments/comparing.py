"""`gemmlab.compare`: compare two records and say what became faster, slower or wrong."""

from __future__ import annotations

import os

from gemmlab.core.records import Record
from gemmlab.kernels.aliases import read_record
from gemmlab.results.comparison import THRESHOLD, Comparison
from gemmlab.results.comparison import compare as compare_records


def compare(
    old: Record | str | os.PathLike[str],
    new: Record | str | os.PathLike[str],
    *,
    threshold: float = THRESHOLD,
    relative_to: str = "",
    other_device: bool = False,
    ignore_same_code: bool = False,
) -> Comparison:
    """Compare two records case by case, from their samples.

    `old` and `new` are records (`bench(...).record`) or the paths of their files. Differences that are certainly
    smaller than `threshold` percent are ignored. With `relative_to`, the name of a contestant timed in turns with the
    others (`"cublas"`, `"openblas"`, `"probe"`), ratios to it are compared. `other_device` allows records of different
    devices. With `ignore_same_code`, a slower case that ran the same machine code is no regression.

    A regression raises nothing: `regressions` of the result lists them. Raises `RecordError` for files that cannot be
    read and for records without comparable cases, and `UsageError` for a threshold outside [0, 100), a reference that
    is not in both records, or different devices.
    """
    before, after = (one if isinstance(one, Record) else read_record(one) for one in (old, new))
    return compare_records(
        before, after, threshold=threshold, relative_to=relative_to, other_device=other_device,
        ignore_same_code=ignore_same_code,
    )  # fmt: skip
