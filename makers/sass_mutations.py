"""Run random changes of machine code on a GPU, and compare the results with the verdicts of the check of control codes.

    python makers/sass_mutations.py prepare --count 10000 --out mutations.npz               (no GPU; minutes)
    python makers/sass_mutations.py run mutations.npz --seconds 150 --out states.json       (needs the GPU)
    python makers/sass_mutations.py run mutations.npz --seconds 150 --out more.json --after states.json
    python makers/sass_mutations.py run mutations.npz --seconds 150 --out some.json --only indices.json
    python makers/sass_mutations.py judge more.json --out sass-mutations.json               (no GPU)
    python makers/sass_mutations.py judge sass-mutations.json --out sass-mutations.json     (other rules; no GPU)

Mutation i has the seed i, and the kernels take turns. `prepare` compiles the kernels and writes their code with all
changes, so that `run` compiles nothing and the code is that of `judge`. A changed kernel runs 20 times in a child
process; one that hangs or faults counts as changed. Each kernel has `--runners` children, which run beside each other.
`run` ends after its seconds; with `--after` it does what that file lacks, with `--only` the indices of a JSON list, in
the list's order.
`judge` says of every changed one whether the check found it, and what `SAMPLE` accused ones that gave the same bits
break. Its record has the index and state of every changed one, so that `judge` reads a record, too.
"""

from __future__ import annotations

import argparse
import json
import queue
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Artifact
from gemmlab.kernels.catalog import find_kernel
from gemmlab.sass.checking.control_codes import check_function
from gemmlab.sass.checking.mutations import Mutation, applied, mutation
from gemmlab.toolchain.cache import decode
from gemmlab.toolchain.elf import read_elf
from gemmlab.verify.changed_code import Build, build_of
from sass_on_gpu import GpuRunner, Subject, packed

ARCH = "sm_90"
RUNS = 20
SUBJECTS = [
    Subject("naive", "65", ARCH), Subject("thread_tile_2d", "128", ARCH), Subject("maxas_64", "128", ARCH),
    Subject("async_copy", "256", ARCH), Subject("reduce_interleaved", "65536", ARCH), Subject("warp_tile", "128", ARCH),
]  # fmt: skip
SAMPLE = 200
_WORD = 16


@cache
def build(number: int) -> Build:
    subject = SUBJECTS[number]
    return build_of(find_kernel(subject.kernel), subject.arch, subject.size, subject.config)


def change(index: int) -> tuple[int, Mutation]:
    """Return the number in `SUBJECTS` of the kernel that mutation `index` changes, and the mutation."""
    subject = index % len(SUBJECTS)
    return subject, mutation(build(subject).function, np.random.default_rng(index))


def code_offset(artifact: Artifact) -> int:
    """Return the offset of the kernel's code in its cubin."""
    sections = read_elf(artifact.code, artifact.kernel).sections
    return next(one.start for one in sections if one.name == f".text.{artifact.entry}")


def prepare(count: int, out: Path) -> None:
    """Write the kernels and all mutations: the offset of the first changed word in the code, and the two words from
    there on.
    """
    places, words = np.zeros(count, np.int64), np.zeros((count, 2 * _WORD), np.uint8)
    for index in range(count):
        subject, made = change(index)
        code = build(subject).function.instructions
        first = made.address // _WORD
        new = [made.words[made.order[place]] for place in (first, first + 1)]
        same = (made.words[made.order[n]] == one.encoding for n, one in enumerate(code) if n not in (first, first + 1))
        if not all(same):
            raise SystemExit(f"mutation {index} changes more than two words")
        places[index] = first * _WORD
        words[index] = np.frombuffer(b"".join(word.to_bytes(_WORD, "little") for word in new), np.uint8)
    codes: dict[str, Any] = {f"artifact_{n}": packed(build(n).artifact) for n in range(len(SUBJECTS))}
    with out.open("wb") as file:
        np.savez_compressed(file, places=places, words=words, **codes)
    print(f"{count} mutations of {len(SUBJECTS)} kernels, {out.stat().st_size:,} bytes")


@dataclass(frozen=True, slots=True)
class Prepared:
    """What `prepare` wrote."""

    places: npt.NDArray[np.int64]
    words: npt.NDArray[np.uint8]
    artifacts: list[Artifact]
    offsets: list[int]

    @classmethod
    def read(cls, path: Path) -> Prepared:
        with np.load(path) as file:
            artifacts = [decode(file[f"artifact_{n}"].tobytes()) for n in range(len(SUBJECTS))]
            return cls(file["places"], file["words"], artifacts, [code_offset(one) for one in artifacts])

    def code(self, index: int) -> bytes:
        """Return the cubin with mutation `index`."""
        number = index % len(SUBJECTS)
        code, at = bytearray(self.artifacts[number].code), self.offsets[number] + int(self.places[index])
        code[at : at + 2 * _WORD] = self.words[index].tobytes()
        return bytes(code)


def states(prepared: Prepared, number: int, waiting: queue.SimpleQueue[int], end: float, device: str) -> dict[int, str]:
    """Run mutations of one subject in a child of its own until none waits or the time is up."""
    if waiting.empty():
        return {}
    artifact = prepared.artifacts[number]
    runner = GpuRunner(SUBJECTS[number], device, artifact)
    right = runner.run(artifact.code, RUNS)
    if isinstance(right, str) or len(set(right)) > 1:
        runner.end()
        raise SystemExit(f"{SUBJECTS[number].kernel} unchanged: {right}")
    found: dict[int, str] = {}
    while time.monotonic() < end:
        try:
            index = waiting.get_nowait()
        except queue.Empty:
            break
        answer = runner.run(prepared.code(index), RUNS)
        found[index] = answer.split(":")[0] if isinstance(answer, str) else "same" if answer == right else "changed"
    runner.end()
    return found


def run(
    path: Path, seconds: float, after: Path | None, only: Path | None, out: Path, device: str, runners: int
) -> None:  # fmt: skip
    """Run mutations, or those of `only` in its order, until the time is up; the file has the rows of `after`, too."""
    end, prepared = time.monotonic() + seconds, Prepared.read(path)
    digests = [artifact.digest for artifact in prepared.artifacts]
    before: dict[str, Any] = (
        json.loads(after.read_text(encoding="utf-8")) if after else {"digests": digests, "rows": []}
    )
    if before["digests"] != digests:
        raise SystemExit(f"{after} has mutations of other code")
    rows: dict[int, str] = dict(before["rows"])
    wanted: Iterable[int] = json.loads(only.read_text(encoding="utf-8")) if only else range(len(prepared.places))
    waiting: list[queue.SimpleQueue[int]] = [queue.SimpleQueue() for _ in SUBJECTS]
    for index in wanted:
        if index not in rows:
            waiting[index % len(SUBJECTS)].put(index)
    with ThreadPoolExecutor(runners * len(SUBJECTS)) as pool:
        parts = [pool.submit(states, prepared, number, waiting[number], end, device)
                 for number in range(len(SUBJECTS)) for _ in range(runners)]  # fmt: skip
        for part in parts:
            rows |= part.result()
    out.write_text(json.dumps({"digests": digests, "rows": sorted(rows.items())}), encoding="utf-8")
    print(f"{len(rows)} of {len(prepared.places)} mutations:", dict(Counter(rows.values())))


def ranges(indices: Iterable[int]) -> list[list[int]]:
    """Return runs of consecutive indices in ascending order, each as its first and the one after its last."""
    found: list[list[int]] = []
    for index in sorted(indices):
        if found and found[-1][1] == index:
            found[-1][1] += 1
        else:
            found.append([index, index + 1])
    return found


def rows_of(data: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return (index, state) of the mutations in a file of `run`, or in a record of `judge`, in ascending order."""
    if "rows" in data:
        return [(index, state) for index, state in data["rows"]]
    if "differing" not in data:
        raise SystemExit("the record has numbers of mutations, but not their indices")
    differing = {index: state for state, indices in data["differing"].items() for index in indices}
    return [(index, differing.get(index, "same")) for start, stop in data["ran"] for index in range(start, stop)]


def judged(row: tuple[int, str]) -> dict[str, Any]:
    """Return a mutation with its state on the GPU and the first finding of the check."""
    index, state = row
    subject, made = change(index)
    found = check_function(applied(build(subject).function, made), ARCH)
    return {
        "index": index, "kernel": SUBJECTS[subject].kernel, "kind": made.kind, "address": made.address,
        "state": state, "accused": bool(found), "certain": any(one.certain for one in found), "text": made.text,
        "finding": str(found[0]) if found else "",
    }  # fmt: skip


def judge(file: Path, out: Path) -> None:
    """Compare what happened with what the check says: of every mutation that changed bits, and of others, in random
    order, until `SAMPLE` of them are accused.
    """
    data = json.loads(file.read_text(encoding="utf-8"))
    for number, digest in enumerate(data["digests"]):
        if build(number).artifact.digest != digest:
            raise SystemExit(f"{SUBJECTS[number].kernel}: compiled by another compiler than what ran")
    rows = rows_of(data)
    others = [row for row in rows if row[1] == "same"]
    np.random.default_rng(len(others)).shuffle(others)
    spared: list[dict[str, Any]] = []
    tried = 0
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        changed = list(pool.map(judged, [row for row in rows if row[1] != "same"], chunksize=8))
        for start in range(0, len(others), SAMPLE):
            found = list(pool.map(judged, others[start : start + SAMPLE], chunksize=8))
            tried += len(found)
            spared += [row for row in found if row["accused"]]
            if len(spared) >= SAMPLE:
                break
    kept = {
        "arch": ARCH, "command": "python makers/sass_mutations.py", "runs": RUNS, "mutations": len(rows),
        "states": dict(Counter(state for _, state in rows)), "digests": data["digests"],
        "ran": ranges(index for index, _ in rows),
        "differing": {
            state: [index for index, other in rows if other == state]
            for state in sorted({state for _, state in rows} - {"same"})
        },
        "changed_and_accused": sum(row["accused"] for row in changed),
        "changed_and_not_accused": [row for row in changed if not row["accused"]],
        # `gemmlab check` lists these as pairs that are closer than recorded, and not as faults.
        "changed_and_uncertain": [row["index"] for row in changed if row["accused"] and not row["certain"]],
        "same_and_judged": tried, "same_and_accused": len(spared), "sample": spared[:SAMPLE],
    }  # fmt: skip
    # A list of numbers is one line.
    text = re.sub(r"\[[\d,\s]+\]", lambda found: " ".join(found[0].split()), json.dumps(kept, indent=1))
    out.write_text(text + "\n", encoding="utf-8")
    print({name: value if isinstance(value, int) else len(value) for name, value in kept.items()}, kept["states"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare")
    preparing.add_argument("--count", type=int, default=10_000)
    preparing.add_argument("--out", type=Path, required=True)
    running = commands.add_parser("run")
    running.add_argument("prepared", type=Path)
    running.add_argument("--seconds", type=float, default=150)
    running.add_argument("--after", type=Path)
    running.add_argument("--only", type=Path, help="a JSON list of indices")
    running.add_argument("--device", default="cuda")
    running.add_argument("--runners", type=int, default=2)
    running.add_argument("--out", type=Path, required=True)
    judging = commands.add_parser("judge")
    judging.add_argument("file", type=Path)
    judging.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.command == "prepare":
        prepare(given.count, given.out)
    elif given.command == "run":
        run(given.prepared, given.seconds, given.after, given.only, given.out, given.device, given.runners)
    else:
        judge(given.file, given.out)
