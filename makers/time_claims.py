"""Time, on a GPU, what open claims wait for, in one run: into benchmarks/results/h200/claims.json.

Which kernels, configurations and sizes they are is known from the claims, as for `count_configurations.py`. A record
that is there counts as timed, and what is new goes into claims-2.json beside it; `--again` times all of it anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

from blocks.claims_page import SOURCES
from blocks.records import RESULTS, load
from blocks.speeds import VENDOR
from claims.claim import finding
from claims.evidence import Timed
from gemmlab.core.errors import GemmlabError
from gemmlab.core.program import Config
from gemmlab.core.records import save_record
from gemmlab.devices.device_name import DeviceName
from gemmlab.devices.select import open_device
from gemmlab.kernels.by_name import named_kernel
from gemmlab.kernels.catalog import find_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.timing.bench import run_bench
from gemmlab.timing.bench_plan import Plan
from gemmlab.timing.configurations import config_specs
from gemmlab.timing.peers import Spec, parse_contestant
from gemmlab.timing.prebuild import of_plan, prebuild

RECORD, OP, DEVICE, MODE = "h200/claims.json", "gemm", DeviceName("cuda", "0"), "cold"
ROUNDS = 5
Wanted = dict[str, list[Timed]]
"""Contestants by problem's label."""


def main(path: Path, again: bool) -> int:
    device = open_device(str(DEVICE), MODE)
    if again:
        for old in path.parent.glob(f"{path.stem}*{path.suffix}"):
            old.unlink()
        load.cache_clear()
    wanted = missing()
    if not wanted:
        print("no claim waits for a time")
        return 0
    run = plan(wanted)
    prebuild(of_plan(run), device, lambda _text: None)
    info = device.describe()
    record = run_bench(
        run, device={"id": info.id, "name": info.name, "facts": dict(info.facts)},
        progress=lambda at: print(f"{at.done}/{at.total} {at.text}", end="\r", file=sys.stderr),
    )  # fmt: skip
    save_record(record, free(path))
    return 0


def free(path: Path) -> Path:
    """Return the path, or one beside it with a number where it is taken."""
    beside = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
    return next(one for one in chain([path], beside) if not one.exists())


def missing() -> Wanted:
    """What claims about products still wait for and a GPU can time."""
    found: Wanted = {}
    for source in SOURCES:
        for claim in source.claims:
            for label, contestants in finding(claim).times:
                if not all(who == VENDOR or find_kernel(who).op == OP for who, _config in contestants):
                    continue  # sums have a record of their own
                mine = found.setdefault(label, [])
                mine += [one for one in map(_whole, contestants) if one not in mine]
    return found


def plan(wanted: Wanted) -> Plan:
    """One run: what is compared must have taken turns. Each size has the contestants that a claim wants there."""
    op = find_op(OP)
    specs = {name: spec for contestants in wanted.values() for name, spec in named(contestants)}
    present = {(name, label) for label, contestants in wanted.items() for name, _spec in named(contestants)}

    def only(contestant: str, problem: Any) -> bool:
        return (contestant, problem.label) in present or contestant not in specs

    return Plan(
        op=op, problems=op.parse_sizes(",".join(wanted)), contestants=list(specs.values()), rounds=ROUNDS, processes=1,
        only=only, device=DEVICE, mode=MODE,
    )  # fmt: skip


def named(contestants: Sequence[Timed]) -> Iterator[tuple[str, Spec]]:
    for who, config in contestants:
        spec = parse_contestant(VENDOR, DEVICE, MODE) if who == VENDOR else _kernel(who, config)
        yield spec.name, spec


def _kernel(who: str, config: Config) -> Spec:
    (spec,) = config_specs([named_kernel(who)], DEVICE, MODE, [config])
    return spec


def _whole(one: Timed) -> Timed:
    """Every parameter said, so that nothing is timed twice; a peer has none."""
    who, config = one
    return one if who == VENDOR else (who, {**find_kernel(who).params, **config})


if __name__ == "__main__":
    try:
        sys.exit(main(RESULTS / RECORD, "--again" in sys.argv[1:]))
    except GemmlabError as error:
        sys.exit(f"{error}")
