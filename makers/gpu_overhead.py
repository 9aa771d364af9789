"""Time the host in calls that start a small product on a GPU: `gemmlab.gemm` beside torch's and CuPy's own calls.

`python makers/gpu_overhead.py FILE` on a machine with a GPU, and torch or CuPy, prints medians and writes a record. The
clock runs until the calls return, not until their kernels end. Bursts are short and the GPU is idle before each, so
that no queue fills and no call waits for a kernel. Contestants take turns in an order that is drawn anew for each
round.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import gemmlab
from gemmlab.core.environment import describe_environment
from gemmlab.core.errors import GemmlabError
from gemmlab.core.records import Method, Record, Result, Sample, save_record
from gemmlab.core.stats import ratio_of_medians, spread
from gemmlab.devices.select import open_device
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem

BURST, BURSTS = 100, 9
"""The number of calls in a burst, which is timed as a whole (a GPU queues 1024), and of bursts in a turn."""
BATCH = 8
OURS, THEIRS, PART = "library call", "peer", "part"
Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A call to time, and the name of the contestant that it is compared with (`beside`): a peer's is its own."""

    name: str
    role: str
    beside: str
    call: Call


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--sizes", default="32,64,128,256")
    parser.add_argument("--packages", default="torch,cupy", help="those that are not installed are left out")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    try:
        record = measured(options.packages.split(","), [int(n) for n in options.sizes.split(",")], options.rounds)
        options.file.parent.mkdir(parents=True, exist_ok=True)
        save_record(record, options.file)
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print("\n".join(table(record)))
    return 0


def measured(packages: Sequence[str], sizes: Sequence[int], rounds: int) -> Record:
    """Return the record of all of `packages` that are installed, at all sizes. Raises `DeviceError` without a GPU."""
    device, environment, results = open_device("cuda").describe(), describe_environment(), list[Result]()
    versions = dict[str, str]()
    for name in packages:
        try:
            package = import_module(name)
        except ImportError:
            continue
        versions[name] = str(package.__version__)
        for n in sizes:
            contestants, synchronise = CONTESTANTS[name](package, n)
            results += time_all(contestants, synchronise, n, rounds, {"package": name, "version": versions[name]})
    method = Method(
        rounds=rounds, processes=1, min_time_us=0.0, warm_up_us=0.0, inner_us=0.0, raw_limit=BURSTS, interleaved=True,
        seed=0, notes=(f"time of the host: bursts of {BURST} calls on an idle GPU, which is waited for in between",),
    )  # fmt: skip
    return Record("bench", "gemm", environment, asdict(device), method, tuple(results))


def time_all(
    contestants: Sequence[Contestant], synchronise: Call, n: int, rounds: int, facts: Mapping[str, Any]
) -> list[Result]:
    """Time all contestants of one package at one size, in turns, and return their results."""
    problem, op = GemmProblem(n, n, n), GemmOp()
    samples: dict[str, list[Sample]] = {one.name: [] for one in contestants}
    shuffle = random.Random(f"{n}")  # noqa: S311 - an order, not a secret
    for one in contestants:
        burst(one.call, synchronise)
    for round_ in range(rounds):
        for one in shuffle.sample(contestants, len(contestants)):
            burst(one.call, synchronise)
            times = tuple(burst(one.call, synchronise) for _ in range(BURSTS))
            samples[one.name].append(Sample(0, round_, median(times), BURST * BURSTS, BURST, times))
    return [
        Result(
            contestant=one.name, problem=problem.to_json(), label=f"{n}x{n}x{n}", flops=op.flops(problem), threads=1,
            facts={"role": one.role, "beside": one.beside, **facts}, samples=tuple(samples[one.name]),
        )
        for one in contestants
    ]  # fmt: skip


def burst(call: Call, synchronise: Call) -> float:
    """Return the host's microseconds for one call, the mean of `BURST` calls in a row."""
    synchronise()
    clock = time.perf_counter_ns
    start = clock()
    for _ in range(BURST):
        call()
    took = clock() - start
    synchronise()
    return took / BURST / 1e3


def of_torch(torch: Any, n: int) -> tuple[list[Contestant], Call]:
    x, y = torch.rand(n, n, device="cuda"), torch.rand(n, n, device="cuda")
    many, into = x.expand(BATCH, n, n).contiguous(), torch.empty_like(x)
    group = [torch.rand(n, n + i, device="cuda") for i in range(BATCH)]
    return [
        *pair("torch", "", lambda: gemmlab.gemm(x, y), "torch.mm", lambda: torch.mm(x, y)),
        *pair("torch", ", out", lambda: gemmlab.gemm(x, y, out=into), "torch.mm", lambda: torch.mm(x, y, out=into)),
        *pair("torch", ", c", lambda: gemmlab.gemm(x, y, beta=1.0, c=x), "torch.addmm", lambda: torch.addmm(x, x, y)),
        *pair("torch", ", transposed", lambda: gemmlab.gemm(x, y.t()), "torch.mm", lambda: torch.mm(x, y.t())),
        *pair("torch", f", batch of {BATCH}", lambda: gemmlab.gemm(many, many), "torch.bmm",
              lambda: torch.bmm(many, many)),
        *pair("torch", f", batch of {BATCH} by one", lambda: gemmlab.gemm(many, y), "torch.matmul",
              lambda: torch.matmul(many, y)),
        *pair("torch", f", group of {BATCH}", lambda: gemmlab.gemm_group([x] * BATCH, group), "torch.mm",
              lambda: [torch.mm(x, one) for one in group]),
        Contestant("torch.empty", PART, "torch.mm", lambda: torch.empty((n, n), dtype=torch.float32, device=x.device)),
    ], torch.cuda.synchronize  # fmt: skip


def of_cupy(cupy: Any, n: int) -> tuple[list[Contestant], Call]:
    x, y = cupy.ones((n, n), cupy.float32), cupy.ones((n, n), cupy.float32)
    many, into = cupy.ones((BATCH, n, n), cupy.float32), cupy.empty_like(x)
    return [
        *pair("cupy", "", lambda: gemmlab.gemm(x, y), "cupy.matmul", lambda: cupy.matmul(x, y)),
        *pair("cupy", ", out", lambda: gemmlab.gemm(x, y, out=into), "cupy.matmul",
              lambda: cupy.matmul(x, y, out=into)),
        *pair("cupy", f", batch of {BATCH}", lambda: gemmlab.gemm(many, many), "cupy.matmul",
              lambda: cupy.matmul(many, many)),
        Contestant("cupy.empty", PART, "cupy.matmul", lambda: cupy.empty((n, n), cupy.float32)),
    ], cupy.cuda.get_current_stream().synchronize  # fmt: skip


CONTESTANTS: Mapping[str, Callable[[Any, int], tuple[list[Contestant], Call]]] = {"torch": of_torch, "cupy": of_cupy}


def pair(package: str, how: str, ours: Call, peer: str, theirs: Call) -> list[Contestant]:
    """Return a contestant for gemmlab's call and one for the package's own; `how`, such as `", out"`, is part of their
    names.
    """
    peer = peer + (f" [{how[2:]}]" if how else "")
    return [Contestant(f"gemmlab.gemm [{package}{how}]", OURS, peer, ours), Contestant(peer, THEIRS, peer, theirs)]


def table(record: Record) -> list[str]:
    """Return the lines of a table: medians, their interquartile ranges over the rounds, and the ratio of each call's
    time to its peer's.
    """
    lines = ["| call | n | us | IQR | x its peer (95 %) |", "| --- | ---: | ---: | ---: | ---: |"]
    found = {(r.contestant, r.label): r for r in record.results}
    for result in record.results:
        own, peer = moments(result), moments(found[str(result.facts["beside"]), result.label])
        ratio, over = ratio_of_medians(own, peer), spread(tuple(own.values()))
        shown = "" if result.facts["role"] == THEIRS else f"{ratio.value:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"
        n = result.label.partition("x")[0]
        lines.append(f"| {result.contestant} | {n} | {over.median:.2f} | {over.iqr:.2f} | {shown} |")
    return lines


def moments(result: Result) -> dict[tuple[int, int], float]:
    return {(sample.process, sample.round): sample.time_us for sample in result.samples}


if __name__ == "__main__":
    sys.exit(main())
