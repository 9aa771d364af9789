"""Measure latencies of sm_90 on a GPU: lower the stall between two instructions until results change.

    python makers/sass_latency_probe.py prepare --out latencies.npz                      (no GPU; minutes)
    python makers/sass_latency_probe.py run latencies.npz --seconds 60 --out rows.json   (needs the GPU)
    python makers/sass_latency_probe.py run latencies.npz --seconds 60 --out more.json --after rows.json

For rows of `src/gemmlab/sass/checking/recorded/sm_90.json` it looks for two instructions of small kernels that are as
close as the row says, lowers the producer's stall by one cycle after the other, as long as no other pair may get too
close, and runs the kernel. The latency of a row is one more than the largest distance at which some result changed; a
row whose results never changed keeps `changed_at` null. `prepare` compiles the kernels and lists the changes, so that
`run` compiles nothing; it ends after its seconds, and goes on where `--after` ended.

It also times a main loop by the stall that its FFMAs get, with one warp on each scheduler: if the time grows with the
sum of the stalls, the stall field is a number of cycles.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Artifact
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.checking.flow import meetings
from gemmlab.sass.checking.latencies import Row, row_of
from gemmlab.sass.checking.latencies import latencies as latencies_of
from gemmlab.sass.checking.steps import steps_of
from gemmlab.sass.instruction import Instruction, SassFunction
from gemmlab.sass.ordering.codes import with_control
from gemmlab.sass.ordering.loop_passes import main_blocks
from gemmlab.sass.writing.slots import EncodingError
from gemmlab.toolchain.cache import decode
from gemmlab.verify.changed_code import build_of
from sass_mutations import ARCH, SUBJECTS, build, code_offset
from sass_on_gpu import GpuRunner, packed

INSTANCES = 4
RUNS = 20
LOOP = ("maxas_64", "64x64x{k}")
LOOP_K = (8192, 16384)
STALLS = range(1, 16)
LONGEST_STAY = 11
"""The longest stall with the yield bit set."""


@dataclass(frozen=True, slots=True)
class Instance:
    """Two instructions of a kernel that are `age` cycles apart; `subject` is the kernel's number in `SUBJECTS`."""

    subject: int
    producer: int
    consumer: int
    age: int


@dataclass(frozen=True, slots=True)
class Distance:
    """Two instructions of a function, the cycles between them, and those that the check asks for."""

    producer: int
    consumer: int
    age: int
    needed: int

    def crosses(self, number: int) -> bool:
        """Return whether the way from one to the other may lead over an instruction; around a loop it always may."""
        return self.producer >= self.consumer or self.producer <= number < self.consumer


def instances() -> tuple[dict[Row, list[Instance]], list[list[Distance]]]:
    """Return some instances of each row, the closest first, and all distances in each subject."""
    found: dict[Row, list[Instance]] = defaultdict(list)
    apart: list[list[Distance]] = []
    for number in range(len(SUBJECTS)):
        function = build(number).function
        steps, known = steps_of(function), latencies_of(ARCH)
        apart.append([])
        for meeting in meetings(flow_graph(function), steps):
            if meeting.age is None:
                continue
            ends = steps[meeting.producer], steps[meeting.consumer]
            latency = known.of(meeting, *ends)
            if latency is not None:
                apart[-1].append(Distance(meeting.producer, meeting.consumer, meeting.age, latency.cycles))
            if meeting.relation == "read" and meeting.producer < meeting.consumer:
                found[row_of(meeting, *ends)].append(
                    Instance(number, meeting.producer, meeting.consumer, meeting.age)
                )  # fmt: skip
    return {row: sorted(some, key=lambda one: one.age)[:INSTANCES] for row, some in sorted(found.items())}, apart


def closer(
    function: SassFunction, instance: Instance, apart: Sequence[Distance]
) -> Iterator[tuple[int, Instruction]]:  # fmt: skip
    """Yield (cycles apart, producer with a lower stall), as long as no other pair gets too close for the check."""
    producer = function.instructions[instance.producer]
    others = [one for one in apart if one.crosses(instance.producer)
              and (one.producer, one.consumer) != (instance.producer, instance.consumer)]  # fmt: skip
    for less in range(1, producer.control.stall):
        if any(one.age - less < one.needed for one in others):
            return
        try:
            yield (
                instance.age - less,
                with_control(producer, replace(producer.control, stall=producer.control.stall - less)),
            )
        except EncodingError:
            return


def prepare(out: Path) -> None:
    """Write the kernels, the changes of them (row, subject, distance, offset of the changed word, the word), and the
    codes of the loop to time.
    """
    rows: list[dict[str, Any]] = []
    found, apart = instances()
    for row, some in found.items():
        for one in some:
            for distance, made in closer(build(one.subject).function, one, apart[one.subject]):
                word = made.encoding
                rows.append({"row": row, "ptxas": some[0].age, "subject": one.subject, "distance": distance,
                             "place": 16 * one.producer, "word": f"{word:032x}"})  # fmt: skip
    sums, loops = loop_codes()
    codes: dict[str, Any] = {f"artifact_{n}": packed(build(n).artifact) for n in range(len(SUBJECTS))}
    codes["loop"] = packed(build_of(find_kernel(LOOP[0]), ARCH, LOOP[1].format(k=LOOP_K[0]), {}).artifact)
    changes = np.frombuffer(json.dumps({"rows": rows, "sums": sums}).encode(), np.uint8)
    with out.open("wb") as file:
        np.savez_compressed(file, changes=changes, loops=loops, **codes)
    print(f"{len(rows)} changes of {len({str(row['row']) for row in rows})} rows, {out.stat().st_size:,} bytes")


def probe(
    changes: Sequence[dict[str, Any]], artifacts: Sequence[Artifact], seconds: float, known: list[bool], device: str
) -> list[bool]:
    """Return for each change whether results changed, in order, as far as the seconds suffice. The answers of earlier
    runs, `known`, come first.
    """
    end, found = time.monotonic() + seconds, list(known)
    offsets = [code_offset(artifact) for artifact in artifacts]
    runners = [GpuRunner(subject, device, code) for subject, code in zip(SUBJECTS, artifacts, strict=True)]
    right = [runner.run(artifact.code, RUNS) for runner, artifact in zip(runners, artifacts, strict=True)]
    for change in changes[len(found) :]:
        if time.monotonic() > end:
            break
        subject = change["subject"]
        code, at = bytearray(artifacts[subject].code), offsets[subject] + change["place"]
        code[at : at + 16] = int(change["word"], 16).to_bytes(16, "little")
        found.append(runners[subject].run(bytes(code), RUNS) != right[subject])
    for runner in runners:
        runner.end()
    return found


def latencies(changes: Sequence[dict[str, Any]], changed: Sequence[bool]) -> list[dict[str, Any]]:
    """Return for each row the largest distance at which results changed, and the least at which none did; `None` if
    there is none.
    """
    rows: dict[str, dict[str, Any]] = {}
    for change, differs in zip(changes, changed, strict=False):
        one = rows.setdefault(
            json.dumps(change["row"]),
            {"row": change["row"], "ptxas": change["ptxas"], "changed_at": None, "same_at": None},
        )
        if differs:
            one["changed_at"] = max(one["changed_at"] or 0, change["distance"])
        else:
            one["same_at"] = min(one["same_at"] or change["distance"], change["distance"])
    return [*rows.values()]


def loop_codes() -> tuple[list[int], npt.NDArray[np.uint8]]:
    """Return, for each of `STALLS`, the sum of the main loop's stalls if its FFMAs get at least that stall, and the
    code. Every version of the loop is changed; the sum is that of the first.
    """
    one = build_of(find_kernel(LOOP[0]), ARCH, LOOP[1].format(k=LOOP_K[0]), {})
    blocks = main_blocks(one.function)
    sums, codes = [], []
    for stall in STALLS:
        code = list(one.function.instructions)
        for place in (place for block in blocks for place in range(block.start, block.stop)):
            control = code[place].control
            if code[place].opcode == "FFMA" and stall >= control.stall:
                stays = control.yield_ and stall <= LONGEST_STAY
                code[place] = with_control(code[place], replace(control, stall=stall, yield_=stays))
        sums.append(sum(each.control.stall for each in code[blocks[0].start : blocks[0].stop]))
        words = b"".join(each.encoding.to_bytes(16, "little") for each in code)
        codes.append(np.frombuffer(words, np.uint8))
    return sums, np.stack(codes)


def loop_times(
    artifact: Artifact, sums: Sequence[int], codes: npt.NDArray[np.uint8], device_name: str
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the least times in microseconds of the loop with each of these codes, at both extents of `LOOP_K`."""
    device, rows, at = open_device(device_name), list[dict[str, Any]](), code_offset(artifact)
    for stall, cycles, words in zip(STALLS, sums, codes, strict=True):
        cubin = bytearray(artifact.code)
        cubin[at : at + len(words)] = words.tobytes()
        times = []
        for k in LOOP_K:
            one = build_of(find_kernel(LOOP[0]), ARCH, LOOP[1].format(k=k), {}, artifact)
            bound = one.bind(bytes(cubin), device)
            bound.run()
            times.append(min(bound.time(10, 5)))
        rows.append({"stall": stall, "sum_of_stalls": cycles, "us": times})
        print(rows[-1])
    return rows


def run(prepared: Path, seconds: float, after: Path | None, out: Path, device: str) -> None:
    """Time the loop, unless the record `after` has its times, run changes until the time is up, and
    write the record.
    """
    with np.load(prepared) as file:
        given = json.loads(file["changes"].tobytes())
        artifacts = [decode(file[f"artifact_{n}"].tobytes()) for n in range(len(SUBJECTS))]
        loop, codes = decode(file["loop"].tobytes()), file["loops"]
    before = json.loads(after.read_text(encoding="utf-8")) if after else {}
    record: dict[str, Any] = {"arch": ARCH, "command": "python makers/sass_latency_probe.py", "runs": RUNS}
    record["digests"] = [artifact.digest for artifact in artifacts]
    if before and before["digests"] != record["digests"]:
        raise SystemExit(f"{after} is about other code")
    record["loop"] = before.get("loop") or loop_times(loop, given["sums"], codes, device)
    record["changed"] = probe(given["rows"], artifacts, seconds, before.get("changed", []), device)
    record["rows"] = latencies(given["rows"], record["changed"])
    out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    longer = [row for row in record["rows"] if row["changed_at"] is not None and row["changed_at"] + 1 > row["ptxas"]]
    done = f"{len(record['changed'])} of {len(given['rows'])} changes"
    print(f"{done}, {len(record['rows'])} rows measured; {len(longer)} changed at the distance that ptxas leaves")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare")
    preparing.add_argument("--out", type=Path, required=True)
    running = commands.add_parser("run")
    running.add_argument("prepared", type=Path)
    running.add_argument("--seconds", type=float, default=60)
    running.add_argument("--after", type=Path)
    running.add_argument("--device", default="cuda")
    running.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    if asked.command == "prepare":
        prepare(asked.out)
    else:
        run(asked.prepared, asked.seconds, asked.after, asked.out, asked.device)
