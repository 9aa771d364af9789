"""Run every conformance kernel on a GPU and keep the bits: `python record_conformance.py --out tests/data/conformance`.

Needs what `gemmlab` needs to run there, and a compiler or a cache filled elsewhere (`--fill` fills it, GPU or none).
A kernel that breaks takes the process's GPU context with it; each file therefore has a process of its own, which is
begun again without that kernel.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from cases import FILES, artifact_of, cases, of_file
from execute import execute

from gemmlab.core.errors import DeviceError, UsageError
from gemmlab.devices.select import open_device

SCHEMA = 1
INPUTS = "inputs"
"""Array of the .npz with a CRC of each kernel's inputs, in the order of the kernels' names."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fill", metavar="ARCH", nargs="+", help="only compile for these architectures")
    parser.add_argument("--file", choices=FILES, help="this file only, in this process")
    parser.add_argument("--skip", nargs="*", default=[], help="kernels to leave out")
    options = parser.parse_args()
    if options.fill:
        for arch in options.fill:
            say(f"{arch}: {sum(1 for _ in cases(arch))} kernels")
        return 0
    if options.file:
        return record_file(options.device, options.file, set(options.skip), options.out)
    return record_all(options.device, options.out)


def record_all(device_name: str, out: Path) -> int:
    """Every file in a process of its own; then what they have in common."""
    broken: list[str] = []
    for file in FILES:
        skipped: list[str] = []
        while True:
            command = [
                sys.executable,
                __file__,
                "--device",
                device_name,
                "--out",
                str(out),
                "--file",
                file,
                "--skip",
                *skipped,
            ]
            done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
            say(done.stdout.rstrip())
            if done.returncode == 0:
                break
            culprit = done.stdout.rpartition("breaks: ")[2].split(None, 1)[0] if "breaks: " in done.stdout else ""
            if not culprit:
                return done.returncode
            skipped.append(culprit)
        broken += skipped
    write_record(device_name, out, broken)
    return 1 if broken else 0


def record_file(device_name: str, file: str, skip: set[str], out: Path) -> int:
    """One file's kernels into `out/ARCH/file.npz`."""
    device: Any = open_device(device_name)
    arch = device.target({})
    kept: dict[str, Any] = {}
    sums: dict[str, int] = {}
    refused: list[str] = []
    for case in of_file(file, arch):
        if case.kernel in skip:
            continue
        try:
            kept[case.kernel] = execute(device, case, arch)
        except (DeviceError, UsageError) as error:
            refused.append(f"{case.kernel}: {error}")
            continue
        except Exception as error:  # noqa: BLE001 - whatever a broken kernel ends in, the next process must leave it out
            say(f"{file} breaks: {case.kernel} {error}")
            return 3
        sums[case.kernel] = case.input_sum()
    folder = out / arch
    folder.mkdir(parents=True, exist_ok=True)
    kept[INPUTS] = np.array([sums[name] for name in sorted(sums)], np.uint32)
    np.savez_compressed(folder / f"{file}.npz", **kept)
    say(f"{file}: {len(sums)} kernels recorded" + "".join(f"\n  refused {line}" for line in refused))
    return 0


def say(text: str) -> None:
    """A line on standard output, at once: the parent process waits for it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write_record(device_name: str, out: Path, broken: list[str]) -> None:
    """`out/ARCH/record.json`: what ran where."""
    device: Any = open_device(device_name)
    arch = device.target({})
    info = device.describe()
    files = {
        file: {"digest": artifact_of(file, arch).digest, "compiler": artifact_of(file, arch).compiler} for file in FILES
    }
    facts = {name: info.facts[name] for name in ("driver", "compute_capability") if name in info.facts}
    record = {"schema": SCHEMA, "device": info.name, "arch": arch, **facts, "broken": broken, "files": files}
    (out / arch / "record.json").write_text(json.dumps(record, indent=1, default=str) + "\n")


if __name__ == "__main__":
    sys.exit(main())
