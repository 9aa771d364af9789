"""Blocks on the performance model beside times measured on an H200: errors, the ladder's order, the
parts of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from blocks.markdown import markdown_table
from blocks.records import RESULTS
from blocks.speeds import square
from gemmlab.analysis.model.model_record import (
    CONFIGURATION,
    LADDER,
    Case,
    ModelRecord,
    grouped,
    inversions,
    load_model,
    median_error,
    rank_correlation,
)
from gemmlab.results.climb_rows import digits, percent

RECORD = "h200/model.json"
CLASSES: Mapping[str, tuple[int, int]] = {
    "64 to 512": (64, 512),
    "640 to 2048": (640, 2048),
    "2176 on": (2176, 1 << 30),
}
"""Name -> the least and the largest extent of a class of square sizes: few blocks; a wave or two; many waves."""
ORDERED = (2048, 4096)
SHOWN = 4096


@cache
def record() -> ModelRecord:
    return load_model(RESULTS / RECORD)


def errors() -> str:
    """Return a table with one line for each rung: the median error by class of sizes."""
    cases = record().of(LADDER, "gemm")
    rows = [_row(f"[`{name}`](ladder-gpu.md#{name})", mine) for name, mine in grouped(cases, _kernel).items()]
    rows.append(_row("all", cases))
    heading = ["rung", *CLASSES, "all sizes", f"predicted / measured at {SHOWN}"]
    sizes = len({case.size for case in cases})
    said = (
        f"Median of |predicted / measured - 1| over {sizes} square sizes, {len(cases)} measured times in all, with "
        "cold caches."
    )
    return "\n\n".join([markdown_table(heading, rows), said])


def others() -> str:
    """Return a table of the errors at the other recorded times."""
    known = record()
    groups: dict[str, list[Case]] = {
        "other configurations of the rungs": known.of(CONFIGURATION, "gemm"),
        "sums, 2^10 to 2^20": [case for case in known.of(LADDER, "reduce") if int(case.size) <= 1 << 20],
        "sums, 2^22 to 2^30": [case for case in known.of(LADDER, "reduce") if int(case.size) > 1 << 20],
        "TF32 rungs": known.of(LADDER, "gemm", "tf32"),
    }
    rows = [
        [
            name, str(len(cases)), percent(median_error(cases)), percent(max(case.error for case in cases)),
            f"{min(_ratios(cases)):.2f} to {max(_ratios(cases)):.2f}",
        ]
        for name, cases in groups.items()
        if cases
    ]  # fmt: skip
    left = [case for case in known.cases if not case.same_code]
    said = ""
    if left:
        names = ", ".join(f"`{name}`" for name in grouped(left, _kernel))
        said = f"Left out, because their machine code has changed since they were timed: {names}."
    return "\n\n".join(
        [markdown_table(["", "measured times", "median error", "largest error", "predicted / measured"], rows), said]
    ).rstrip()


def order() -> str:
    """Return a table by size: how well the predicted order of the rungs agrees with the measured one."""
    lines = []
    for n in ORDERED:
        cases = [case for case in record().of(LADDER, "gemm") if case.size == square(n)]
        wrong = "; ".join(
            f"`{one.kernel}` before `{two.kernel}` (measured {two.measured_us / one.measured_us:.2f} x, predicted "
            f"{two.predicted_us / one.predicted_us:.2f} x)"
            for one, two in inversions(cases)
        )
        pairs = len(cases) * (len(cases) - 1) // 2
        lines.append([
            f"{n}³", f"{rank_correlation(cases):.3f}", f"{len(inversions(cases))} of {pairs}", wrong or "none",
        ])  # fmt: skip
    heading = ["size", "rank correlation", "pairs in the wrong order", "which"]
    return markdown_table(heading, lines, ["which"])


def terms() -> str:
    """Return a table with one line for each rung: the parts of its predicted time at `SHOWN`."""
    cases = [case for case in record().of(LADDER, "gemm") if case.size == square(SHOWN)]
    names = list(
        dict.fromkeys(name for case in cases for name, us in case.terms.items() if us >= 0.005 * case.predicted_us)
    )
    rows = [
        [f"`{case.kernel}`", digits(case.measured_us), digits(case.predicted_us),
         *(percent(us / case.predicted_us) if (us := case.terms.get(name, 0.0)) else "" for name in names)]
        for case in cases
    ]  # fmt: skip
    return markdown_table(["rung", "measured, us", "predicted, us", *names], rows)


def constants() -> str:
    """Return a table of the model's constants."""
    return markdown_table(["constant", "value"], [[f"`{k}`", f"{v:g}"] for k, v in record().constants.items()])


def _row(name: str, cases: Sequence[Case]) -> list[str]:
    cells = []
    for low, high in CLASSES.values():
        some = [case for case in cases if low <= int(case.size.partition("x")[0]) <= high]
        cells.append(percent(median_error(some)) if some else "")
    at = [case for case in cases if case.size == square(SHOWN)] if name != "all" else []
    return [name, *cells, percent(median_error(cases)), f"{at[0].ratio:.2f}" if at else ""]


def _ratios(cases: Sequence[Case]) -> list[float]:
    return [case.ratio for case in cases]


def _kernel(case: Case) -> str:
    return case.kernel


BLOCKS: Mapping[str, Callable[[], str]] = {
    "model-errors": errors,
    "model-others": others,
    "model-order": order,
    "model-terms": terms,
    "model-constants": constants,
}
