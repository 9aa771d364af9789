"""Measure what the performance model assumes about a GPU: loads behind loads, FFMAs beside memory instructions,
barriers, code of many lengths, latencies under load, empty launches, reads of memory, and when blocks of rungs begin
and end.

    python makers/unit_costs.py prepare --out unit-costs.npz                       (no GPU; a minute)
    python makers/unit_costs.py run unit-costs.npz --out OUT [--seconds 90]        (half a minute of a GPU)
    python makers/unit_costs.py predict unit-costs.npz --out predicted.json        (no GPU; some minutes)

`prepare` compiles every kernel for sm_90 and writes the code. `run` writes OUT.json, with medians and quantiles, and
OUT.npz, with each latency and with the SM, start and end of each block of a rung. It begins no experiment after
`--seconds`. `predict` writes what the model says for each loop: its cycles of a turn. On the emulator (`run --device
emulated:sm_90`) everything runs shortly, as a test; its clocks mean nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from gemmlab.devices.device import Device
from gemmlab.devices.device_name import parse_device
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.devices.select import open_device
from unit_cost.codes import ARCH, read, save, write
from unit_cost.machine import FULL, SHORT, Runner
from unit_cost.predicting import predicted
from unit_cost.running import everything

SCHEMA = "gemmlab.unit-costs/1"


def run(prepared: Path, out: Path, seconds: float, device_name: str) -> None:
    """Run every experiment and write the record and the arrays."""
    start = time.monotonic()
    on_gpu = parse_device(device_name).family == "cuda"
    # Warps copy to the same words, which is a race to the emulator and nothing to the times.
    name = parse_device(device_name)
    device: Device = (
        open_device(device_name, "cold") if on_gpu else EmulatedDevice(name.which or ARCH, check_races=False)
    )
    runner = Runner(device, read(prepared), FULL if on_gpu else SHORT)

    def say(text: str) -> None:
        print(f"{time.monotonic() - start:6.1f} s  {text}", flush=True)

    say("ready")
    found, arrays = everything(runner, seconds, say)
    info = device.describe()
    record = {"schema": SCHEMA, "device": info.name, "facts": dict(info.facts), **found}
    out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    save(out.with_suffix(".npz"), arrays)
    failed = [row["label"] for part in found.values() for row in part if "error" in row]
    say(f"{sum(map(len, found.values()))} experiments, {len(failed)} without a result: {failed[:5]}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare", help="compile; no GPU is needed")
    preparing.add_argument("--out", type=Path, required=True, help="file for the code")
    running = commands.add_parser("run", help="measure on a GPU")
    running.add_argument("prepared", type=Path, help="the file that `prepare` wrote")
    running.add_argument("--out", type=Path, required=True, help="where to, without a suffix")
    running.add_argument("--seconds", type=float, default=90, help="no experiment begins after these")
    running.add_argument("--device", default="cuda")
    predicting = commands.add_parser("predict", help="what the model says for each loop; no GPU is needed")
    predicting.add_argument("prepared", type=Path)
    predicting.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    if asked.command == "prepare":
        write(asked.out)
    elif asked.command == "run":
        run(asked.prepared, asked.out, asked.seconds, asked.device)
    else:
        rows = predicted(read(asked.prepared))
        asked.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
