"""Make the table that `gemmlab.gemm` chooses GPU kernels by, from the records of a GPU: `python choices.py`.

The kernels of float32 are those of the sweeps (`makers/sweep_kernels.py`), those of lower precisions come from records
of `gemmlab bench`. The table gets a few kernels and configurations, such that at every product one of them is nearly
the best. The figures of `dispatch/waves.py` are fitted to their times. With `--check` nothing is written, and the exit
code is 1 if the table is not that of the records.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from choices_fit import FEW, MEMORY_GBS, PARTS_GBS, fitted
from choices_times import Times, benched, by_date, least, stated, swept
from gemmlab.core.precision import FLOAT32
from gemmlab.dispatch.batch_choice import FILE as BATCHED
from gemmlab.dispatch.measurements import FILE, Measurement, Table
from gemmlab.dispatch.waves import in_domain
from gemmlab.ops.gemm_problem import GemmProblem
from quick_times import Trial
from sweep_request import parsed_trials

HERE = Path(__file__).parents[1] / "benchmarks" / "results" / "h200"
CANDIDATES = Path(__file__).parent / "candidates.txt"
HOPPER_CANDIDATES = Path(__file__).parent / "candidates-hopper.txt"
HOPPER_SWEEPS = tuple(by_date(HERE.glob("sweep-hopper*.jsonl.gz")))
"""The sweeps of the kernels for tensor cores, the latest last. All those that `HOPPER_CANDIDATES` lists enter the
table."""
HOPPER = "sm_90a"
SWEEPS = tuple(HERE / name for name in ("sweep.jsonl.gz", "sweep-random.jsonl.gz"))
LATER = tuple(HERE / f"sweep-{name}.jsonl.gz" for name in ("shapes", "large", "tiles", "short"))
"""Sweeps of new kernels and configurations at a few products. They add entries to the table and remove none."""
BATCHES = HERE / "sweep-batches.jsonl.gz"
TILES, STRIPS = "batched", "batched_rows"
"""The kernels that compute a batch in one launch."""
NEAREST = 1.01
"""The largest ratio to the least time of a batch at which a kernel of batches enters the table."""
ALONG = "(TRANS_B if M <= N else not TRANS_A)"
"""The condition that the wide operand of a strip is contiguous along k. Its words are then read in another order, so
times with and without the condition get figures of their own.
"""
LOWER = ("tf32.json",)
IN_ORDER, LADDER, SQUARES = "block_tile", "gemm.json", "M == N and N == K and K >= 64"
"""The kernel that adds in the order of k on GPUs before sm_80, the record with its times, and the condition that the
timed products fulfil.
"""
MEASURED_ON = "H200"
LEFT_OUT = ("naive", "block_tile")
"""Kernels with too few times in the sweep."""
NOWHERE_ELSE = "K < 0"
"""The domain, which no product is in, of a kernel and configuration with too few times for figures. It is chosen only
at products at which it was timed.
"""
OLDER = ("conflict_free", "warp_tile")
"""Kernels for GPUs before sm_80."""
ALWAYS = ("async_copy", *OLDER)
"""Kernels that always enter the table: for large squares, and for older GPUs."""
WORST, LEAST_GAIN, LATER_GAIN = 4.0, 0.01, math.log(1.02) ** 2
"""The assumed ratio to the best time at a product that no kernel of the table computes; the least gain for which a
kernel enters the table, by the wide sweeps, and by all sweeps with the `LATER` ones. A gain is a sum of squared
logarithms of ratios.
"""


def table(left_out: Collection[str] = ()) -> Table:
    """Return the table of single products, from the records; without the times at the float32 products whose labels are
    `left_out`.
    """
    taken, times = swept((*SWEEPS, *LATER), left_out=left_out)
    records = [*(entry for name in LOWER for entry in benched(HERE / name)), *swept(LATER)[1]]
    # Hopper's kernels have a sweep of their own.
    lower = [entry for entry in records if entry.base.precision != FLOAT32 and entry.base.arch != HOPPER]
    trials = parsed_trials(f"@{CANDIDATES}")
    hopper = parsed_trials(f"@{HOPPER_CANDIDATES}")
    domains = {trial.without_parts: trial.condition for trial in trials}
    # Times at a few products must remove nothing from the table, so kernels are first selected by the wide sweeps.
    broad = _choosable(swept(SWEEPS, left_out=left_out)[1])
    first = {_name(one.base) for one in _enough(broad, (), LEAST_GAIN)}
    names = first | (domains.keys() - {_name(one.base) for one in broad})
    float32 = _enough([one for one in _choosable(times) if _name(one.base) in names], first, LATER_GAIN)
    taken_too = {trial.without_parts for trial in hopper}
    domains |= {trial.without_parts: trial.condition for trial in hopper}
    # Sweeps of different days differ by clocks, so a kernel that is listed for some products is chosen at no others.
    tensor = [_only(one, domains[_name(one.base)]) for one in swept(HOPPER_SWEEPS)[1] if _name(one.base) in taken_too]
    every = [*float32, *tensor, *lower]
    best = least(every)
    empty = Table(MEASURED_ON, taken, MEMORY_GBS, PARTS_GBS, ())
    entries = [
        replace(
            fitted(_within(one, domains.get(_name(one.base), "")), empty, best), times_us=stated(one, best),
            domain=domains.get(_name(one.base), "") if one in lower or len(one.problems) >= FEW else NOWHERE_ELSE,
            below="sm_80" if one.base.kernel in OLDER else "",
        )
        for one in every
    ]  # fmt: skip
    # The times of `IN_ORDER` are not stated: at most of these squares no other kernel was timed, and it is the best at
    # none.
    oldest = [one for one in benched(HERE / LADDER) if one.base.kernel == IN_ORDER]
    entries += [replace(fitted(one, empty, least(oldest)), domain=SQUARES, below="sm_80") for one in oldest]
    return replace(empty, entries=tuple(entries))


def _within(times: Times, domain: str) -> Times:
    """Return the times at products that fulfil a condition, if these are enough for figures, else all. The others were
    measured before the condition was stated.
    """
    found = _only(times, domain)
    return found if len(found.problems) >= FEW else times


def _only(times: Times, domain: str) -> Times:
    """Return the times at products that fulfil a condition."""
    where = replace(times.base, domain=domain)
    return replace(times, us={key: us for key, us in times.us.items() if in_domain(where, key[0])})


def batches() -> Table:
    """Return the table of batches that are computed in one launch each."""
    taken, times = swept((BATCHES,), "batch")
    several = [one for each in times for one in _by_order(each) if _is_near(one[0], times)]
    best = least(times)
    empty = Table(MEASURED_ON, taken, MEMORY_GBS, PARTS_GBS, ())
    return replace(
        empty,
        entries=tuple(
            replace(fitted(one, empty, best), times_us=stated(one, best), domain=domain) for one, domain in several
        ),
    )


def _by_order(times: Times) -> Iterator[tuple[Times, str]]:
    """Yield the times of a kernel of batches, each part with the condition on its products; empty for all. The times of
    strips are divided by `ALONG`.
    """
    if times.base.kernel == TILES:
        yield times, ""
    elif times.base.kernel == STRIPS:
        lies_along = replace(times.base, domain=ALONG)
        along = {key: us for key, us in times.us.items() if in_domain(lies_along, key[0])}
        across = {key: us for key, us in times.us.items() if key not in along}
        yield from ((replace(times, us=us), domain) for us, domain in ((along, ALONG), (across, f"not {ALONG}")) if us)


def _is_near(one: Times, times: list[Times]) -> bool:
    """Return whether a kernel and configuration takes at most `NEAREST` times the least time at some batch."""
    best = least(times)
    return any(us <= NEAREST * best[problem, one.base.precision] for (problem, _), us in one.us.items())


def _choosable(times: list[Times]) -> list[Times]:
    return [one for one in times if one.base.precision == FLOAT32 and one.base.kernel not in LEFT_OUT]


def _name(entry: Measurement) -> tuple[Any, ...]:
    return Trial(entry.kernel, entry.config).without_parts


def _enough(times: list[Times], first: Collection[tuple[Any, ...]], least_gain: float) -> list[Times]:
    """Return a few kernels and configurations, such that at every product one of them is nearly the best. Those named
    in `first`, and all kernels of `ALWAYS`, are among them.

    They are added one after the other, always the one that gains most, until the gain is below `least_gain`. More
    entries would hardly gain more, and the least of many estimates is often a wrong one.
    """
    best: dict[GemmProblem, float] = {}
    own: list[dict[GemmProblem, float]] = []
    for one in times:
        found: dict[GemmProblem, float] = {}
        for (problem, _), us in one.us.items():
            found[problem] = min(us, found.get(problem, math.inf))
            best[problem] = min(us, best.get(problem, math.inf))
        own.append(found)
    loss = dict.fromkeys(best, math.log(WORST) ** 2)
    taken = [index for index, one in enumerate(times) if one.base.kernel in ALWAYS or _name(one.base) in first]

    def rest(index: int) -> dict[GemmProblem, float]:
        return {
            problem: min(now, math.log(own[index][problem] / best[problem]) ** 2) if problem in own[index] else now
            for problem, now in loss.items()
        }

    for index in taken:
        if times[index].base.kernel not in OLDER or _name(times[index].base) in first:
            loss = rest(index)
    while True:
        gains = {index: sum(loss.values()) - sum(rest(index).values()) for index in range(len(times))}
        index = max(gains, key=lambda each: gains[each])
        if gains[index] < least_gain:
            return [times[index] for index in sorted(set(taken))]
        taken.append(index)
        loss = rest(index)


def main() -> int:
    """Write the tables; with `--check` return 1 if they are not up to date."""
    stale = 0
    for file, made in ((FILE, table()), (BATCHED, batches())):
        text = json.dumps(made.to_json(), separators=(",", ":")).replace('{"kernel"', '\n{"kernel"') + "\n"
        if "--check" in sys.argv[1:]:
            stale += text != file.read_text(encoding="utf-8")
            continue
        file.write_text(text, encoding="utf-8")
        print(f"{file}: {len(made.entries)} entries, {len(text)} bytes")
    return int(stale > 0)


if __name__ == "__main__":
    sys.exit(main())
