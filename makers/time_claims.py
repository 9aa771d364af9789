"""Time on a GPU, in one run, the kernels that open claims need, into benchmarks/results/h200/claims.json.

The claims name the kernels, configurations and sizes, as for `count_configurations.py`. Times in existing records
count; if there are records, new times go into claims-2.json, and so on. `--again` removes these records and times all
anew.
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
"""Label of a problem -> the contestants to time at it."""


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
    """Return the path if no file has it, else the first free one with a number, from `-2` on."""
    beside = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
    return next(one for one in chain([path], beside) if not one.exists())


def missing() -> Wanted:
    """Return the contestants whose times open claims about products need."""
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
    """Return the plan of one run, because only contestants that took turns can be compared. At each size the
    contestants are those that a claim needs there.
    """
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
    """Return a contestant with all parameters of its kernel, so that equal ones are equal values; a peer has none."""
    who, config = one
    return one if who == VENDOR else (who, {**find_kernel(who).params, **config})


if __name__ == "__main__":
    try:
        sys.exit(main(RESULTS / RECORD, "--again" in sys.argv[1:]))
    except GemmlabError as error:
        sys.exit(f"{error}")
