"""Compute the regret of the rule of waves from recorded times, without a GPU.

    python makers/choices_regret.py [REGRET.json ...]

The random products of the sweeps were drawn three times. Each draw is left out in turn: the table is made from all
other products, and the kernel that the rule chooses is looked up among the times of those left out. Its time divided by
the least recorded time of its product is the regret. No product judges a table that knows it, neither its figures nor
its choice of kernels.

Records of `regret.py` judge the table of all products of the sweeps, which theirs are not among. They have times of the
few fastest kernels alone. If another one is chosen, the regret is at least that of the slowest of these.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from best_of_all import title
from choices import LATER, SWEEPS, table
from choices_times import OP, swept, without_times
from gemmlab.core.precision import FLOAT32
from gemmlab.dispatch.choice import choose
from gemmlab.dispatch.measurements import Table
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.dispatch.waves import PARTS, gpu_model
from gemmlab.ops.gemm_problem import GemmProblem
from quick_times import Trial
from random_products import draw

DRAWS = ((20261122, 120, 35), (4711, 100, 38), (20261123, 160, 34))
"""Seed, number of products, and log2 of the most multiply-adds of each draw, as `make gpu-sweep` names them."""
AIM = 1.15
EXACT, NEXT, AT_LEAST = "", "next ", "at least "
Known = Mapping[tuple[Any, ...], float]
"""Microseconds by `Trial.key`."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The regret of the rule at one product."""

    label: str
    regret: float
    known_as: str
    """`EXACT`; or, if the kernel with the least estimate has no time, `NEXT` for the regret of the next one that has,
    or `AT_LEAST`.
    """
    chosen: Trial
    best: Trial


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="*", type=Path, metavar="REGRET.json")
    parser.add_argument("--worst", type=int, default=5, help="how many of the worst products are listed")
    options = parser.parse_args(arguments)
    known, problems = recorded()
    every = list[Judged]()
    for seed, count, most in DRAWS:
        labels = {problem.label for problem in draw(seed, count, most=2**most)} & known.keys()
        rule = without_times(table(labels))
        found = [judged(rule, problems[label], known[label]) for label in sorted(labels)]
        say(f"draw {seed}", found, options.worst)
        every += found
    say("all draws", every, options.worst)
    if options.records:
        rule = without_times(table())
        for path in options.records:
            say(str(path), list(of_record(rule, json.loads(path.read_text(encoding="utf-8")))), options.worst)
    return 0


def recorded() -> tuple[dict[str, dict[tuple[Any, ...], float]], dict[str, GemmProblem]]:
    """Return the float32 times of the sweeps by label and trial, and the products by label."""
    known: dict[str, dict[tuple[Any, ...], float]] = {}
    problems: dict[str, GemmProblem] = {}
    for one in swept((*SWEEPS, *LATER))[1]:
        if one.base.precision != FLOAT32:
            continue
        for (problem, parts), us in one.us.items():
            config = {**one.base.config, **({PARTS: parts} if one.base.parts else {})}
            known.setdefault(problem.label, {})[Trial(one.base.kernel, config).key] = us
            problems[problem.label] = problem
    return known, problems


def judged(rule: Table, problem: GemmProblem, known: Known, *, others_us: float = 0.0) -> Judged:
    """Return the regret of the choice by `rule`, a table without times. Kernels that are not in `known` take at least
    `others_us`; 0 if nothing is known of them.
    """
    considered = choose(problem, gpu_model(rule.gpu), rule, precision=HIGHEST).considered
    trials = [Trial(one.kernel, one.config) for one in considered]
    best = min(known, key=known.__getitem__)
    chosen, known_as = trials[0], EXACT
    if chosen.key not in known and others_us:
        known_as = AT_LEAST
    elif chosen.key not in known:
        chosen, known_as = next(trial for trial in trials if trial.key in known), NEXT
    regret = known.get(chosen.key, others_us) / known[best]
    return Judged(problem.label, regret, known_as, chosen, Trial(best[0], dict(best[1:])))


def of_record(rule: Table, record: Mapping[str, Any]) -> Iterable[Judged]:
    """Yield the regrets at the products of a record of `regret.py`. It has the times of the fastest of a first pass and
    of the kernel chosen then, which may have been slow.
    """
    for shape in record["shapes"]:
        known = {Trial(one["kernel"], one["config"]).key: one["us"] for one in shape["again"]}
        fastest = sorted(shape["again"], key=lambda one: float(one["quick_us"]))[: record["timed_again"]]
        slowest_us = max(one["us"] for one in fastest)
        yield judged(rule, OP.problem_from_json(shape["problem"]), known, others_us=slowest_us)


def say(name: str, found: Sequence[Judged], worst: int) -> None:
    """Print the median, the 90th percentile and the largest of some regrets, and the products with the largest."""
    by_regret = sorted(found, key=lambda one: -one.regret)
    regrets = [one.regret for one in by_regret]
    far, inexact = sum(regret > AIM for regret in regrets), sum(one.known_as != EXACT for one in found)
    print(
        f"{name}: {len(found)} products, median {statistics.median(regrets):.3f},"
        f" 90 % {regrets[len(regrets) // 10]:.3f}, worst {regrets[0]:.2f}, above {AIM} {far};"
        f" geometric mean {statistics.geometric_mean(regrets):.4f}, {inexact} choices without a time"
    )
    for one in by_regret[:worst]:
        print(f"  {one.known_as}{one.regret:.2f} {one.label}: {title(one.chosen)}; best {title(one.best)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
