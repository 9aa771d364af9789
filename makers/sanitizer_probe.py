"""Record the reports of compute-sanitizer's four tools on asynchronous kernels with bugs, and on the same kernels
without.

    python makers/sanitizer_probe.py [--out benchmarks/results/h200/sanitizer.json] [--seconds 150] [--workers 16]
    python makers/sanitizer_probe.py --emulated    # only the emulator's hazards

It needs a GPU of sm_90a and `compute-sanitizer`, except with `--emulated`. Every kernel runs in a process of its own,
because many break their CUDA context or never end. Launches that did not begin within `--seconds` are missing in the
record, and another call adds them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests/emulated/asynchronous"))

from buggy_launch import BuggyLaunch  # noqa: E402 - it lies with the tests
from buggy_launches import launches  # noqa: E402

from gemmlab.core.errors import GemmlabError  # noqa: E402

SCHEMA = "gemmlab.sanitizer/1"
TOOLS = {
    "memcheck": ("--report-api-errors", "no"),
    "racecheck": ("--racecheck-report", "all"),
    "synccheck": (),
    "initcheck": (),
}
KERNEL_SECONDS, PROCESS_SECONDS = 6.0, 30.0
"""Time limits in seconds: of a launch, and of its process under a tool."""
SUMMARY = re.compile(r"SUMMARY: (\d+) (?:error|hazard)")
LINES = 12
"""The most lines of a report that are stored."""


def looked_at(name: str, tool: str, sanitizer: str) -> dict[str, Any]:
    """Run the launch `name` under a tool, or alone if the tool is `none`; return the record's entry: exit code (`None`
    if the process was killed at its limit), seconds, errors, report, and the launch's own output.
    """
    command = [sys.executable, __file__, "--launch", name]
    if tool != "none":
        command = [sanitizer, "--tool", tool, *TOOLS[tool], "--print-limit", "20", *command]
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)  # fmt: skip
    try:
        said = process.communicate(timeout=PROCESS_SECONDS)[0]
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, code = process.communicate()[0], None
    report = [line.removeprefix("=========").strip() for line in said.splitlines() if line.startswith("=========")]
    report = [
        line for line in report if line and not line.startswith(("Host Frame", "Saved host", "COMPUTE-SANITIZER"))
    ]
    summaries = [int(found) for line in report if (found := _summary(line)) is not None]
    return {
        "tool": tool, "code": code, "seconds": round(time.monotonic() - begun, 1),
        "errors": max(summaries, default=0), "report": report[:LINES],
        "summary": [line for line in report if "SUMMARY" in line],
        "output": [line for line in said.splitlines() if line.startswith("launch:")],
    }  # fmt: skip


def _summary(line: str) -> str | None:
    found = SUMMARY.search(line)
    return found[1] if found else None


def record(known: dict[str, Any], every: list[BuggyLaunch], options: argparse.Namespace) -> dict[str, Any]:
    """Return the record `known` with the launches added that it lacked and that began in time."""
    end = time.monotonic() + options.seconds
    rows: dict[str, Any] = known.get("launches", {})
    wanted = [(str(each), tool) for tool in ("none", *TOOLS) for each in every]
    wanted = [job for job in wanted if job[1] not in rows.get(job[0], {})]
    # Slow launches, which hang, begin first, so that none of them runs alone at the end.
    wanted.sort(key=lambda job: -max((ran["seconds"] for ran in rows.get(job[0], {}).values()), default=0))

    def work(job: tuple[str, str]) -> None:
        if time.monotonic() < end:
            rows.setdefault(job[0], {})[job[1]] = looked_at(*job, options.sanitizer)

    with ThreadPoolExecutor(options.workers) as pool:
        list(pool.map(work, wanted))
    version = subprocess.run([options.sanitizer, "--version"], capture_output=True, text=True, check=False).stdout
    return known | {"schema": SCHEMA, "sanitizer": version.strip().splitlines()[-1:], "launches": rows}


def hazards(each: BuggyLaunch) -> list[str]:
    """Return the kinds of hazards that the emulator reports of a launch, in its order."""
    device = "emulated:sm_90a" if "arch" in each.keywords else "emulated:sm_90"
    return list(dict.fromkeys(hazard.kind for hazard in each.run(device) or ()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/h200/sanitizer.json")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--sanitizer", default="compute-sanitizer")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--launch", help="only launch the kernel of this name")
    parser.add_argument("--emulated", action="store_true", help="add what the emulator says of each kernel")
    options = parser.parse_args()
    every = list(launches())
    if options.launch is not None:
        try:
            next(each for each in every if str(each) == options.launch).run(options.device, timeout_s=KERNEL_SECONDS)
        except GemmlabError as error:
            print(f"launch: {type(error).__name__}: {error}"[:300], flush=True)
            os._exit(3)  # a kernel that hangs would block a regular exit
        print("launch: done", flush=True)
        return 0
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    if options.emulated:
        known["emulator"] = {str(each): hazards(each) for each in every}
        options.out.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
        return 0
    made = record(known, every, options)
    options.out.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
    missing = sum(len(TOOLS) + 1 - len(made["launches"].get(str(each), {})) for each in every)
    print(f"{len(every)} launches, {missing} runs missing; wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
