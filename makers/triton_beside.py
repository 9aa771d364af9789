"""Time a plain tiled Triton kernel beside gemmlab's products with float32's accuracy, on a GPU, and record the errors.

    python makers/triton_beside.py benchmarks/results/h200/triton.json [--sizes 1024,2048,4096,8192] [--seconds 60]

Triton's kernel (`triton_product.py`) multiplies by `tl.dot(..., input_precision=...)`, or by parts that it makes
itself, each in some configurations; the configuration that is fastest in a short trial at a size takes part there.
Contestants take turns with cold caches on normal data. Errors are |C - reference| / (|A| |B|) against float64, the
largest and the root mean square. The record is saved after each size, and no size is begun once the seconds are over.
It needs torch and Triton; the exit code is 3 without a GPU.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import GemmlabError, UsageError
from gemmlab.core.records import Method, Record, Result, Sample, save_record
from gemmlab.core.stats import spread
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from triton_contestants import Contestant, Field, GpuField

CALLS = 5
"""The number of calls in a turn, and in the trial of a configuration that is not slow."""
SLOW = 2.0
"""A configuration whose first time is more than this many times the best is not called again."""
FEWEST_ROUNDS = 3
WHOLE = 256
"""Sizes are multiples of this, which all tiles of Triton's kernel divide: it has no guards."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--sizes", default="1024,2048,4096,8192", help=f"squares, multiples of {WHOLE}")
    parser.add_argument("--rounds", type=int, default=15, help="the most at a size")
    parser.add_argument("--seconds", type=float, default=60.0, help="all of it, compilation included")
    options = parser.parse_args(arguments)
    try:
        sizes = parsed_sizes(options.sizes)
        options.file.parent.mkdir(parents=True, exist_ok=True)
        record = measured(GpuField(), sizes, options.rounds, options.seconds, options.file)
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print("\n".join(table(record)))
    return 0


def parsed_sizes(text: str) -> list[int]:
    """Return the sizes of `--sizes`. Raises `UsageError` for one that is no multiple of `WHOLE`."""
    sizes = [int(one) if one.isdecimal() else 0 for one in text.split(",")]
    for size, said in zip(sizes, text.split(","), strict=True):
        if size < 1 or size % WHOLE:
            raise UsageError(f"--sizes {said}: a multiple of {WHOLE}, for Triton's kernel has no guards")
    return sizes


def measured(field: Field, sizes: Sequence[int], rounds: int, seconds: float, file: Path) -> Record:
    """Return the record of all sizes that began within `seconds`. After each size it is saved to `file`."""
    end = time.monotonic() + seconds
    environment, results, notes = describe_environment(), list[Result](), list[str]()
    for index, n in enumerate(sizes):
        now = time.monotonic()
        if now > end:
            notes.append(f"no time was left for {', '.join(map(str, sizes[index:]))}")
        else:
            results += at_size(field, n, rounds, now + (end - now) / (len(sizes) - index), end, notes)
        method = Method(
            rounds=rounds, processes=1, min_time_us=0.0, warm_up_us=0.0, inner_us=0.0, raw_limit=CALLS,
            interleaved=True, seed=0, mode="cold",
            notes=("normal data, times are by events", f"a turn has {CALLS} calls",
                   "the level-2 cache is written over before each call"),
        )  # fmt: skip
        record = Record("bench", "gemm", environment, field.device(), method, tuple(results), tuple(notes))
        save_record(record, file)
        if now > end:
            break
    return record


def at_size(field: Field, n: int, rounds: int, share: float, end: float, notes: list[str]) -> list[Result]:
    """Return one result for each contestant at one size, and add notes on those that do not run to `notes`.

    No round but the first `FEWEST_ROUNDS` begins after `share`, no trial after `end`, both times of the monotonic
    clock.
    """
    problem, op = GemmProblem(n, n, n), GemmOp()
    field.prepare(n)
    tried = {one.name: trial(field, one, end) for one in field.contestants}
    best = {name: way for name, times in tried.items() if (way := fastest(times)) is not None}
    notes += [
        f"{name} does not run at {n}: {'; '.join(map(str, tried[name].values()))}" for name in tried.keys() - best
    ]
    errors = {one.name: field.errors(one.ways[best[one.name]]) for one in field.contestants if one.name in best}
    samples: dict[str, list[Sample]] = {name: [] for name in best}
    shuffle = random.Random(f"{n}")  # noqa: S311 - an order, not a secret
    playing = [one for one in field.contestants if one.name in best]
    for round_ in range(rounds):
        if round_ >= FEWEST_ROUNDS and time.monotonic() > share:
            break
        for one in shuffle.sample(playing, len(playing)):
            times = tuple(field.time(one.ways[best[one.name]], CALLS))
            samples[one.name].append(Sample(0, round_, median(times), CALLS, 1, times))
    return [
        Result(
            contestant=one.name, problem=problem.to_json(), label=problem.label, flops=op.flops(problem), threads=1,
            facts={**one.facts, "configuration": best[one.name], "tried": tried[one.name], "errors": errors[one.name]},
            samples=tuple(samples[one.name]),
        )
        for one in playing
    ]  # fmt: skip


def trial(field: Field, contestant: Contestant, end: float) -> dict[str, float | str]:
    """Return median microseconds by configuration, or the error of one that does not run. Configurations after the time
    `end` are left out, except that the first one that runs is always among them.
    """
    found: dict[str, float | str] = {}
    for name, call in contestant.ways.items():
        if fastest(found) is not None and time.monotonic() > end:
            break
        try:
            field.time(call, 1)  # compiles
            (us,) = field.time(call, 1)
        except Exception as error:  # noqa: BLE001 - a compiler may refuse in any way
            reason = str(error).strip().splitlines() or [""]
            found[name] = f"{type(error).__name__}: {reason[-1][:200]}"
            continue
        best = min((time_us for time_us in found.values() if isinstance(time_us, float)), default=us)
        found[name] = us if us > SLOW * best else median(field.time(call, CALLS))
    return found


def fastest(tried: Mapping[str, float | str]) -> str | None:
    """Return the configuration with the least time; `None` if none runs."""
    times = {name: us for name, us in tried.items() if isinstance(us, float)}
    return min(times, key=lambda name: times[name], default=None)


def table(record: Record) -> list[str]:
    """Return the lines of a table: medians, their interquartile ranges over the rounds, speeds and errors; then the
    notes.
    """
    lines = ["| contestant | n | us | IQR | TFLOP/s | errors | configuration |",
             "| --- | ---: | ---: | ---: | ---: | --- | --- |"]  # fmt: skip
    for result in record.results:
        over = spread([sample.time_us for sample in result.samples])
        errors: Mapping[str, Any] = result.facts["errors"]
        said = "; ".join(f"{data} {most:.2f} / {rms:.3f}" for data, (most, rms) in errors.items())
        speed, n = result.flops / over.median / 1e6, result.label.partition("x")[0]
        figures = f"{n} | {over.median:.1f} | {over.iqr:.1f} | {speed:.1f}"
        lines.append(f"| {result.contestant} | {figures} | {said} | {result.facts['configuration']} |")
    return [*lines, *record.notes]


if __name__ == "__main__":
    sys.exit(main())
