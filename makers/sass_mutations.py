"""Blind changes of machine code on a GPU, and what the check of control codes says of each.

    python makers/sass_mutations.py run --count 10000 --seconds 540 --out mutations.json     (needs the GPU)
    python makers/sass_mutations.py run --count 10000 --seconds 540 --start 6200 --out mutations-2.json
    python makers/sass_mutations.py judge mutations.json mutations-2.json --out sass-mutations.json

Mutation i is the same in each run: its seed is i. A changed kernel runs 20 times in a child process; one that hangs or
faults counts as changed. `judge` needs no GPU: it says of every changed one whether the check found it, and of the
accused ones that gave the same bits what they break.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.kernels.catalog import find_kernel
from gemmlab.sass.checking.control_codes import check_function
from gemmlab.sass.checking.mutations import Mutation, applied, mutation
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.verify.changed_code import Build, build_of
from sass_on_gpu import GpuRunner, Subject

ARCH = "sm_90"
RUNS = 20
SUBJECTS = [
    Subject("naive", "65", ARCH), Subject("thread_tile_2d", "128", ARCH), Subject("maxas_64", "128", ARCH),
    Subject("async_copy", "256", ARCH), Subject("reduce_interleaved", "65536", ARCH), Subject("warp_tile", "128", ARCH),
]  # fmt: skip
SAMPLE = 200


@cache
def build(number: int) -> Build:
    subject = SUBJECTS[number]
    return build_of(find_kernel(subject.kernel), subject.arch, subject.size, subject.config)


def change(index: int, share: int) -> tuple[int, Mutation]:
    """Mutation `index`: each subject has `share` of them in a row, so that its child process serves them all."""
    subject = min(index // share, len(SUBJECTS) - 1)
    return subject, mutation(build(subject).function, np.random.default_rng(index))


def run(count: int, seconds: float, start: int, out: Path, device: str) -> None:
    end, share = time.monotonic() + seconds, -(-count // len(SUBJECTS))
    runners = [GpuRunner(subject, device) for subject in SUBJECTS]
    right: dict[int, list[str]] = {}
    rows: list[list[Any]] = []
    for index in range(start, count):
        if time.monotonic() > end:
            break
        subject, made = change(index, share)
        one = build(subject)
        if subject not in right:
            answer = runners[subject].run(one.artifact.code, RUNS)
            if isinstance(answer, str) or len(set(answer)) > 1:
                raise SystemExit(f"{SUBJECTS[subject].kernel} unchanged: {answer}")
            right[subject] = answer
        answer = runners[subject].run(with_words(one.artifact.code, one.function, made.words, made.order), RUNS)
        state = answer.split(":")[0] if isinstance(answer, str) else "same" if answer == right[subject] else "changed"
        rows.append([index, subject, made.kind, made.address, state])
    for runner in runners:
        runner.end()
    digests = [build(n).artifact.digest for n in range(len(SUBJECTS))]
    out.write_text(json.dumps({"count": count, "share": share, "digests": digests, "rows": rows}), encoding="utf-8")
    states = [row[-1] for row in rows]
    print(f"{len(rows)} mutations up to {start + len(rows)}:", {state: states.count(state) for state in set(states)})


def judge(files: list[Path], out: Path) -> None:
    rows: list[dict[str, Any]] = []
    for file in files:
        data = json.loads(file.read_text(encoding="utf-8"))
        for index, subject, kind, address, state in data["rows"]:
            if build(subject).artifact.digest != data["digests"][subject]:
                raise SystemExit(f"{SUBJECTS[subject].kernel}: compiled by another compiler than on the GPU's machine")
            _, made = change(index, data["share"])
            found = check_function(applied(build(subject).function, made), ARCH)
            rows.append({
                "index": index, "kernel": SUBJECTS[subject].kernel, "kind": kind, "address": address, "state": state,
                "accused": bool(found), "text": made.text, "finding": str(found[0]) if found else "",
            })  # fmt: skip
    missed = [row for row in rows if row["state"] != "same" and not row["accused"]]
    spared = [row for row in rows if row["state"] == "same" and row["accused"]]
    kept = {"mutations": len(rows), "changed": sum(row["state"] != "same" for row in rows),
            "accused": sum(row["accused"] for row in rows), "changed_and_not_accused": missed,
            "accused_and_same": len(spared), "sample": spared[:: max(1, len(spared) // SAMPLE)][:SAMPLE]}  # fmt: skip
    out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print({name: value if isinstance(value, int) else len(value) for name, value in kept.items()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--count", type=int, default=10_000)
    running.add_argument("--seconds", type=float, default=540)
    running.add_argument("--start", type=int, default=0)
    running.add_argument("--device", default="cuda")
    running.add_argument("--out", type=Path, required=True)
    judging = commands.add_parser("judge")
    judging.add_argument("files", type=Path, nargs="+")
    judging.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.command == "run":
        run(given.count, given.seconds, given.start, given.out, given.device)
    else:
        judge(given.files, given.out)
