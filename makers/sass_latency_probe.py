"""Latencies of sm_90 measured on a GPU: how far a stall can be lowered before results change.

    python makers/sass_latency_probe.py [--seconds 500] [--out benchmarks/results/h200/sass-latencies.json]

For rows of `src/gemmlab/sass/checking/recorded/sm_90.json` it looks for two instructions of small kernels that are as
close as the row says, lowers the producer's stall by one cycle after the other, as long as the check names this row
alone, and runs the kernel. The latency of a row is one more than the largest distance at which some result changed; a
row whose results never changed keeps `changed_at` null.

It also times a main loop against the stall set for its FFMAs, with one warp on each scheduler: the stall field is a
number of cycles if the time grows by the sum of the stalls.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.checking.control_codes import check_function
from gemmlab.sass.checking.flow import meetings
from gemmlab.sass.checking.latencies import Row, row_of
from gemmlab.sass.checking.steps import steps_of
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.ordering.codes import replace_code, with_control
from gemmlab.sass.ordering.loop_passes import main_block
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.sass.writing.slots import EncodingError
from gemmlab.verify.changed_code import build_of
from sass_mutations import ARCH, SUBJECTS, build
from sass_on_gpu import GpuRunner

INSTANCES = 4
RUNS = 20
LOOP = ("maxas_64", "64x64x{k}")


@dataclass(frozen=True, slots=True)
class Instance:
    """Two instructions of a subject that are `age` cycles apart."""

    subject: int
    producer: int
    consumer: int
    age: int


def instances() -> dict[Row, list[Instance]]:
    """Return some instances of each row, the closest first."""
    found: dict[Row, list[Instance]] = defaultdict(list)
    for number in range(len(SUBJECTS)):
        function = build(number).function
        steps = steps_of(function)
        for meeting in meetings(flow_graph(function), steps):
            if meeting.age is not None and meeting.relation == "read" and meeting.producer < meeting.consumer:
                row = row_of(meeting, steps[meeting.producer], steps[meeting.consumer])
                found[row].append(Instance(number, meeting.producer, meeting.consumer, meeting.age))
    return {row: sorted(some, key=lambda one: one.age)[:INSTANCES] for row, some in sorted(found.items())}


def closer(function: SassFunction, instance: Instance) -> Iterator[tuple[int, SassFunction]]:
    """Yield (cycles apart, function) with the producer's stall lowered, as long as only this pair is too close."""
    code = list(function.instructions)
    control = code[instance.producer].control
    for less in range(1, control.stall):
        try:
            code[instance.producer] = with_control(
                function.instructions[instance.producer], replace(control, stall=control.stall - less)
            )
        except EncodingError:
            return
        made = replace_code(function, code)
        accused = {(f.producer.address // 16, f.consumer.address // 16) for f in check_function(made, ARCH)}
        if accused <= {(instance.producer, instance.consumer)}:
            yield instance.age - less, made


def probe(seconds: float, device: str) -> list[dict[str, Any]]:
    end, rows = time.monotonic() + seconds, []
    runners = [GpuRunner(subject, device) for subject in SUBJECTS]
    right = [runner.run(build(n).artifact.code, RUNS) for n, runner in enumerate(runners)]
    for row, some in instances().items():
        changed, same = list[int](), list[int]()
        for one in some:
            if time.monotonic() > end:
                break
            whole = build(one.subject)
            for distance, made in closer(whole.function, one):
                code = with_words(whole.artifact.code, whole.function, [each.encoding for each in made.instructions])
                (same if runners[one.subject].run(code, RUNS) == right[one.subject] else changed).append(distance)
        if changed or same:
            rows.append({"row": row, "ptxas": some[0].age, "changed_at": max(changed, default=None),
                         "same_at": min(same, default=None)})  # fmt: skip
    for runner in runners:
        runner.end()
    return rows


def loop_times(device_name: str) -> list[dict[str, Any]]:
    """Time a main loop with each stall for its FFMAs, for two lengths."""
    device, rows = open_device(device_name), []
    for stall in range(1, 16):
        times = []
        for k in (8192, 16384):
            one = build_of(find_kernel(LOOP[0]), ARCH, LOOP[1].format(k=k), {})
            block = main_block(one.function)
            code = list(one.function.instructions)
            for place in range(block.start, block.stop):
                control = code[place].control
                if code[place].opcode == "FFMA" and stall >= control.stall:
                    code[place] = with_control(
                        code[place], replace(control, stall=stall, yield_=control.yield_ and stall <= 11)
                    )
            cubin = with_words(one.artifact.code, one.function, [each.encoding for each in code])
            bound = one.bind(cubin, device)
            bound.run()
            times.append(min(bound.time(10, 5)))
        cycles = sum(each.control.stall for each in code[block.start : block.stop])
        rows.append({"stall": stall, "sum_of_stalls": cycles, "us": times})
        print(rows[-1])
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/h200/sass-latencies.json"))
    given = parser.parse_args()
    record: dict[str, Any] = {"arch": ARCH, "command": "python makers/sass_latency_probe.py", "runs": RUNS}
    record["loop"] = loop_times(given.device)
    record["rows"] = probe(given.seconds, given.device)
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    longer = [row for row in record["rows"] if row["changed_at"] is not None and row["changed_at"] + 1 > row["ptxas"]]
    print(f"{len(record['rows'])} rows measured; {len(longer)} changed at the distance that ptxas leaves")
