"""Profile the probes of sm_90a's asynchronous machine with Nsight Compute and keep each instruction's counts.

`python async_record.py --out FOLDER [--ncu ncu] [--seconds 85] [--workers 6] [--parts once often]`, on a machine with a
GPU. The probes are dealt to several processes, as most of their time is not the GPU's. What did not run in time is
missing in the record; a record that lies in FOLDER is added to.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ncu_record import as_json, head, instructions, to_text
from profiled import ASYNC_PATH

from gemmlab.observe.ncu_report import METRICS

PARTS = {"once": 6, "often": 4}
"""What is profiled, and in how many parts: every probe once; and those with waits that may be repeated again."""
COUNTS = ("--metrics", ",".join(METRICS), "--clock-control", "none", "--cache-control", "none")
SECTIONS = {"once": ("--section", "SourceCounters"), "often": ()}


@dataclass
class Recording:
    """The record as it grows, and the time at which it must be complete."""

    ncu: str
    device: str
    path: Path
    end: float
    record: dict[str, Any]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def part(self, job: tuple[str, int]) -> bool:
        """Profile one part of the probes and write the record; return whether all of it was profiled."""
        what, part = job
        left = self.end - time.monotonic()
        if left <= 0:
            return False
        with tempfile.TemporaryDirectory() as folder:
            names, report = Path(folder) / "names.json", Path(folder) / "part.ncu-rep"
            said = self._profile(what, part, names, report, left)
            if not names.exists() or not report.exists():
                sys.stdout.write(f"{what} {part}: nothing was profiled: {said[-600:]}\n")
                return False
            found, wanted = instructions(self.ncu, report), json.loads(names.read_text())
        with self.lock:
            launches = self.record["launches"]
            for (name, code), kernel in zip(wanted, found, strict=False):
                launch = as_json(kernel) | {"code": code}
                launches[name] = again(launches[name], launch) if name in launches else launch
            self.path.write_text(to_text(self.record))
        sys.stdout.write(f"{what} {part}: {len(wanted)} launches, {len(found)} profiled, {left:.0f} s were left\n")
        if len(wanted) != len(found):
            sys.stdout.write(said[-600:] + "\n")
        sys.stdout.flush()
        return len(wanted) == len(found)

    def _profile(self, what: str, part: int, names: Path, report: Path, seconds: float) -> str:
        script = Path(__file__).with_name("launch_async_probes.py")
        command = [
            self.ncu, "--force-overwrite", "--export", str(report), *COUNTS, *SECTIONS[what], sys.executable,
            str(script), what, "--part", f"{part}/{PARTS[what]}", "--device", self.device, "--names", str(names),
        ]  # fmt: skip
        env = {**os.environ, "LC_ALL": "C"}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, start_new_session=True
        )
        try:
            return process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            # The profiled process is a child of ncu, and would go on.
            os.killpg(process.pid, signal.SIGKILL)
            return f"the time was over; {process.communicate()[0]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=85)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / ASYNC_PATH.name
    record = json.loads(path.read_text()) if path.exists() else head(options.ncu, options.device)
    recording = Recording(options.ncu, options.device, path, time.monotonic() + options.seconds, record)
    jobs = [(what, part) for what in options.parts for part in range(PARTS[what])]
    with ThreadPoolExecutor(options.workers) as pool:
        whole = list(pool.map(recording.part, jobs))
    # Profilers that run side by side may stand in each other's way.
    for job, done in zip(jobs, whole, strict=True):
        if not done:
            recording.part(job)
    launches = recording.record["launches"]
    sys.stdout.write(
        f"{len(launches)} launches, {sum(len(launch['rows']) for launch in launches.values())} instructions\n"
    )
    return int(not launches)


def again(known: dict[str, Any], launch: dict[str, Any]) -> dict[str, Any]:
    """A launch that ran more often: `rows` have the least counts; `most` has the largest where they differ."""
    if not launch["rows"] or launch["code"] != known["code"]:
        return known
    whole = {row[0]: row for row in known["rows"]} | {row[0]: row for row in known.get("most", ())}
    least = merged(known["rows"], launch["rows"], min)
    most = merged(list(whole.values()), launch["rows"], max)
    differ = [row for row, low in zip(most, least, strict=True) if row != low]
    return known | {"rows": least, "most": differ, "runs": known.get("runs", 1) + 1}


def merged(known: list[list[Any]], rows: list[list[Any]], choose: Callable[[Any, Any], Any]) -> list[list[Any]]:
    """Rows of both, whose counts `choose` takes from two; a count that one of them lacks is 0 there."""
    first, second = ({row[0]: row for row in each} for each in (known, rows))
    found = []
    for address in sorted(first | second):
        text = (first | second)[address][1]
        counts = [each[address][2:] if address in each else [0] * len(METRICS) for each in (first, second)]
        found.append([address, text, *(_both(one, other, choose) for one, other in zip(*counts, strict=True))])
    return found


def _both(one: int | None, other: int | None, choose: Callable[[Any, Any], Any]) -> int | None:
    return None if one is None and other is None else choose(one or 0, other or 0)


if __name__ == "__main__":
    sys.exit(main())
