"""Check `gemmlab.sum` at the operation's sums, as arrays of 1, 3 and 70 rows, along each axis and along both.

The memory layouts take turns from call to call: many sums together meet all of them, one sum does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal

import numpy as np

from gemmlab.core.errors import TimeLimitError
from gemmlab.core.precision import OVERFLOW
from gemmlab.core.time_limit import require_time
from gemmlab.ops.footprint import check_bytes, require_memory
from gemmlab.ops.op import Expected, Float32Array
from gemmlab.ops.reduce import ReduceOp, ReduceProblem
from gemmlab.verify.case_tally import Progress, Tally
from gemmlab.verify.check_report import CheckReport
from gemmlab.verify.elementwise import compare
from gemmlab.verify.views import VIEWS, make_view

SumCall = Callable[..., Any]
"""Signature: `sum(x, axis, *, threads)` -> the result."""
_ROWS = (1, 3, 70)


@dataclass(frozen=True, slots=True)
class Call:
    """One call to try: the problem's elements as an array of `rows` rows in the layout `view`, summed along `axis`.

    With `axis` `None` it is summed along both. Elements left over by the division into rows are not summed.
    """

    problem: ReduceProblem
    rows: int
    view: str
    axis: int | None

    @property
    def label(self) -> str:
        """The call's rows, layout and axis in brackets, for messages."""
        return f" [as {self.rows} rows, {self.view}, axis {self.axis}]"


def check_sum(
    total: SumCall, *, name: str, threads: int = 1, problems: Sequence[ReduceProblem] | None = None,
    scale: str = "quick", seed: int = 0, progress: Progress | None = None,
) -> CheckReport:  # fmt: skip
    """Check `total` at the sums among `problems` (default: the operation's cases), each as arrays of several shapes.

    Results must lie within the elementwise bound and have the same bits on one thread and on `threads`; inputs must not
    change. Raises `MemoryError`, before the first call is made, for a case that needs more memory than there is.
    """
    op = ReduceOp()
    wanted = op.cases(("nn",), np.random.default_rng(seed), scale) if problems is None else problems
    calls = list(_calls([problem for problem in wanted if problem.operator == "sum"]))
    for call in calls:
        require_memory(check_bytes(op, call.problem), f"checking size {call.problem.label}")
    tally = Tally(name, "cpu", {}, threads, seed)
    for index, call in enumerate(calls):
        try:
            require_time(name)
        except TimeLimitError as error:
            tally.stop(call.problem.label + call.label, len(calls), error)
            break
        _try(total, call, np.random.default_rng([seed, index]), threads, tally)
        if progress:
            progress(index + 1, len(calls))
        if tally.enough:
            break
    return tally.report(len(calls))


def _calls(problems: Sequence[ReduceProblem]) -> Iterator[Call]:
    views = cycle(VIEWS)
    for problem in problems:
        yield Call(problem, 1, "plain", None)
        for rows in _ROWS:
            for axis in (None, 0, 1):
                yield Call(problem, rows, next(views), axis)


def _try(total: SumCall, call: Call, rng: np.random.Generator, threads: int, tally: Tally) -> None:
    op, rows = ReduceOp(), call.rows
    contents = op.fill(call.problem, rng)["x"].reshape(-1)
    cols = contents.size // rows
    view = make_view(contents[: rows * cols].reshape(rows, cols), call.view)
    elements = np.array(view.array)
    # NumPy may warn of a sum that is not finite, or overflows on the way; a warning for any other sum is unexpected.
    tame = bool(np.abs(elements.astype(np.float64)).sum() < OVERFLOW)
    warn: Literal["warn", "ignore"] = "warn" if tame else "ignore"
    try:
        with np.errstate(over=warn, invalid=warn):
            found = [np.asarray(total(view.array, call.axis, threads=count)) for count in sorted({1, threads})]
    except Exception as error:  # noqa: BLE001 - a legal call must not raise anything
        tally.case(call.problem, (), (), [f"raised {type(error).__name__}: {error}"], call.label)
        return
    notes = [f"{view.changed()} bytes of x were changed"] if view.changed() else []
    if found[0].tobytes() != found[-1].tobytes():
        notes.append(f"the result with {threads} threads differs in its bits from that with 1")
    lines = [elements.reshape(-1)] if call.axis is None else list(elements.T if call.axis == 0 else elements)
    if found[-1].dtype != np.float32 or found[-1].size != len(lines):
        notes.append(f"returned {found[-1].dtype} {found[-1].shape}, expected {len(lines)} of float32")
        tally.case(call.problem, (), (), notes, call.label)
        return
    expected = _expected(op, lines)
    length = max((line.size for line in lines), default=0)
    compared = compare("sum", found[-1].reshape(1, -1), expected, length)
    tally.ratio(call.problem.label + call.label, compared.worst_ratio, compared.source_error)
    tally.case(call.problem, [compared.mismatch], (), notes, call.label)


def _expected(op: ReduceOp, lines: Sequence[Float32Array]) -> Expected:
    """Return reference values and bounds of shape (1, lines): one element for the sum of each line."""
    each = [op.reference(ReduceProblem(line.size), {"x": line})["out"] for line in lines]
    values, bounds = ([float(getattr(one, name)[0, 0]) for one in each] for name in ("values", "bound"))
    return Expected(np.array([values]), np.array([bounds]))
