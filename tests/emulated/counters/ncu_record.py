"""Profile the probes and the three rungs with Nsight Compute and keep each instruction's counts.

`python ncu_record.py --out FOLDER --ncu /path/to/ncu`, on a machine with a GPU. The counts are those of ncu's source
page: what each instruction was asked to do, not what hardware counters saw beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from profiled import ARCH, PATH, SCHEMA

from gemmlab.devices.select import open_device
from gemmlab.observe.ncu_report import METRICS, Instructions, from_csv, from_report

EXTRA = (
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__inst_executed.sum", "smsp__thread_inst_executed.sum", "smsp__thread_inst_executed_pred_on.sum",
)  # fmt: skip
"""Hardware counters of whole launches, kept beside: busy kernels arbitrate too, so nothing is asserted on them."""
COLLECT = ("--metrics", ",".join([*METRICS, *EXTRA]), "--section", "SourceCounters", "--clock-control", "none")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    record = head(options.ncu, options.device)
    launches = record["launches"]
    options.out.mkdir(parents=True, exist_ok=True)
    for what in ("probes", "rungs"):
        with tempfile.TemporaryDirectory() as folder:
            launches |= profile(options.ncu, options.device, what, Path(folder))
        (options.out / PATH.name).write_text(to_text(record))
    sys.stdout.write(
        f"{len(launches)} launches, {sum(len(launch['rows']) for launch in launches.values())} instructions\n"
    )
    return 0


def head(ncu: str, device: str) -> dict[str, Any]:
    """A record without launches."""
    return {
        "schema": SCHEMA, "arch": ARCH, "profiler": run(ncu, "--version").strip().splitlines()[-1],
        "device": open_device(device).describe().name, "metrics": list(METRICS), "launches": {},
    }  # fmt: skip


def profile(ncu: str, device: str, what: str, folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """The launches of `launch_probes.py WHAT` with their names."""
    names, report = folder / f"{what}.json", folder / f"{what}.ncu-rep"
    script = Path(__file__).with_name("launch_probes.py")
    run(
        ncu, "--force-overwrite", "--export", str(report), *COLLECT,
        sys.executable, str(script), what, "--device", device, "--names", str(names),
    )  # fmt: skip
    found = instructions(ncu, report)
    wanted = json.loads(names.read_text())
    if len(found) != len(wanted):
        kernels = ", ".join(kernel.name for kernel in found[:4])
        raise SystemExit(f"{what}: {len(wanted)} launches were made and {len(found)} profiled ({kernels}, ...)")
    return [(name, as_json(kernel)) for name, kernel in zip(wanted, found, strict=True)]


def instructions(ncu: str, report: Path) -> list[Instructions]:
    """Each profiled kernel's instructions, by ncu's Python module if it lies beside ncu, else from the printed page."""
    try:
        found = from_report(ncu, report, [re.escape(name) for name in EXTRA])
    except ImportError as error:
        sys.stdout.write(f"no ncu_report module ({error}): the printed source page is read\n")
        page = run(ncu, "--import", str(report), "--page", "source", "--csv", "--print-units", "base")
        return from_csv(page)
    return found


def as_json(kernel: Instructions) -> dict[str, Any]:
    """One launch: its kernel, hardware counters, and a row an instruction (address, text, counts in METRICS' order)."""
    rows = [
        [address, text, *(None if name not in counts else int(counts[name]) for name in METRICS)]
        for address, text, counts in kernel.rows
    ]
    return {"kernel": kernel.name, "totals": kernel.totals, "rows": rows}


def to_text(record: dict[str, Any]) -> str:
    """JSON with an instruction a line."""
    launches = record["launches"]
    lines = ['{\n"launches": {']
    for place, (name, launch) in enumerate(launches.items()):
        rows = ",\n".join(json.dumps(row) for row in launch["rows"])
        head = (
            f'{json.dumps(name)}: {{"kernel": {json.dumps(launch["kernel"])}, "totals": {json.dumps(launch["totals"])}'
        )
        more = {name: value for name, value in launch.items() if name not in ("kernel", "totals", "rows")}
        tail = "".join(f", {json.dumps(name)}: {json.dumps(value)}" for name, value in more.items()) + "}"
        lines.append(f'{head}, "rows": [\n{rows}\n]{tail}' + ("," if place + 1 < len(launches) else ""))
    rest = {name: value for name, value in record.items() if name != "launches"}
    return "\n".join(lines) + "\n},\n" + json.dumps(rest)[1:] + "\n"


def run(*command: str) -> str:
    """What a command prints; ends the program with its words when it fails."""
    shared = str(Path(__file__).parents[2])
    env = {
        **os.environ,
        "LC_ALL": "C",
        "PYTHONPATH": os.pathsep.join(filter(None, [shared, os.environ.get("PYTHONPATH")])),
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ... failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
