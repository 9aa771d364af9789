"""The block on how well the model predicts a change of configuration: pairs of configurations of one rung that were
timed on an H200.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from blocks.markdown import markdown_table
from blocks.model import record
from gemmlab.analysis.model.changes import LEAST, Change, changes, ratio_error, sign_rate
from gemmlab.analysis.model.model_record import CONFIGURATION
from gemmlab.results.climb_rows import percent

SIGNS, ERROR = 0.95, 0.05
"""The model's aim: the least share of pairs whose faster configuration it names, and the largest median error of the
ratio of their times.
"""


def by_rung() -> str:
    """Return a table with one line for each rung: the number of pairs, the share of pairs whose faster configuration
    the model names, the median error of the ratio of their times, the worst pair.
    """
    known = record()
    found = changes([case for case in known.cases if case.part == CONFIGURATION and case.same_code])
    kernels = dict.fromkeys(change.faster.kernel for change in found)
    rows = [_row(f"`{name}`", [change for change in found if change.faster.kernel == name]) for name in kernels]
    rows.append(_row("all", found))
    heading = ["rung", "pairs", "right sign", "median error of the ratio", "worst: measured, predicted"]
    reached = sign_rate(found) >= SIGNS and ratio_error(found) <= ERROR
    said = (
        f"All pairs of configurations of one rung at one size of `configs.json` whose measured times differ by "
        f"{LEAST - 1:.0%} or more. "
        f"The aim is {SIGNS:.0%} right signs and a median error of {ERROR:.0%}: "
        f"{'it is reached' if reached else 'it is not reached'}."
    )
    return "\n\n".join([markdown_table(heading, rows), said])


def _row(name: str, found: Sequence[Change]) -> list[str]:
    worst = max(found, key=lambda change: change.error)
    return [
        name, str(len(found)), percent(sign_rate(found)), percent(ratio_error(found)),
        f"{worst.measured:.2f}, {worst.predicted:.2f}",
    ]  # fmt: skip


BLOCKS: Mapping[str, Callable[[], str]] = {"model-changes": by_rung}
