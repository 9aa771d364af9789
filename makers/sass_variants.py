"""Time kernels on a GPU, in turns, with their instructions in several orders that give the bits of the compiler's code.

    python makers/sass_variants.py prepare --out variants.npz [KERNEL[:NAME=VALUE...] ...]     (no GPU; minutes)
    python makers/sass_variants.py run variants.npz [--size 4096] [--rounds 12] [--seconds 60] --out sass-variants.json

The contestants of each kernel are its code as compiled, and the code that each of `CHOICES`, a list of passes, makes of
it. They take turns; a round times each once, and the median over the rounds counts. A choice whose bits differ is named
and left out. `prepare` compiles and orders, so that `run` does neither; `run` begins no round after its seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from claims.small_runs import SASS_VARIANTS
from gemmlab.core.errors import GemmlabError
from gemmlab.core.program import Artifact
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import BoundKernel
from gemmlab.kernels.catalog import find_kernel
from gemmlab.sass.ordering.loop_passes import PASSES, ordered
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.toolchain.cache import decode
from gemmlab.verify.changed_code import build_of
from sass_on_gpu import GpuRunner, Subject, packed

ARCH = "sm_90"
CHOICES: tuple[tuple[str, ...], ...] = (
    ("reuse",), ("memory",), ("memory", "reuse"), ("ffma", "reuse"), ("ffma", "reuse", "stalls"),
    ("ffma", "memory", "reuse", "stalls"), ("stalls",), PASSES,
)  # fmt: skip
KERNELS = ("async_copy", "maxas_256", "maxas_64", "thread_tile_2d")
INNER = 5
CHECKED, RUNS = "512", 20
"""The product on which every order must give the compiler's bits, in each of so many runs."""


class Timed(Protocol):
    """A contestant that can be timed."""

    def time(self, repeats: int, inner: int = 1) -> list[float]: ...


def prepare(kernels: Sequence[str], out: Path) -> None:
    """Write the code of every kernel (`NAME` or `NAME:PARAMETER=VALUE,...`) as compiled, and in each order."""
    facts: list[dict[str, Any]] = []
    codes: dict[str, Any] = {}
    for number, text in enumerate(kernels):
        name, _, pairs = text.partition(":")
        config = {key: int(value) for key, _, value in (pair.partition("=") for pair in pairs.split(",") if pair)}
        build = build_of(find_kernel(name), ARCH, "256", config)
        codes[f"artifact_{number}"] = packed(build.artifact)
        orders: list[dict[str, Any]] = []
        for choice in CHOICES:
            try:
                made = ordered(build.function, ARCH, choice)
                code = with_words(build.artifact.code, build.function, made.words, made.order, name)
            except GemmlabError as error:
                print(f"{name} {'+'.join(choice)}: {error}")
                continue
            codes[f"code_{number}_{len(orders)}"] = np.frombuffer(code, np.uint8)
            orders.append({"passes": "+".join(choice), "before": asdict(made.before), "after": asdict(made.after)})
        facts.append({"kernel": name, "config": config, "orders": orders})
    with out.open("wb") as file:
        np.savez_compressed(file, facts=np.frombuffer(json.dumps(facts).encode(), np.uint8), **codes)
    print(f"{sum(len(one['orders']) for one in facts)} orders of {len(facts)} kernels, {out.stat().st_size:,} bytes")


def variants(
    device: Device, one: dict[str, Any], artifact: Artifact, codes: Sequence[bytes], size: str
) -> dict[str, tuple[BoundKernel, dict[str, Any]]]:
    """Return every variant of a kernel that gives the same bits, bound to the same operands, with its facts.

    The bits are those of a product of `CHECKED`, in a process of their own: wrong control codes may end a GPU context.
    """
    config: dict[str, int] = one["config"]
    runner = GpuRunner(Subject(one["kernel"], CHECKED, ARCH, config), str(device.device_name), artifact)
    right = runner.run(artifact.code, RUNS)
    build = build_of(find_kernel(one["kernel"]), ARCH, size, config, artifact)
    operands = build.operands(device)
    found = {"compiled": (build.bind(artifact.code, device, operands),
                          {"digest": artifact.digest, "compiler": artifact.compiler})}  # fmt: skip
    for order, code in zip(one["orders"], codes, strict=True):
        answer = runner.run(code, RUNS)
        if answer == right:
            facts = {"before": order["before"], "after": order["after"]}
            found[order["passes"]] = build.bind(code, device, operands), facts
        else:
            print(f"{one['kernel']} {order['passes']}: {answer if isinstance(answer, str) else 'other bits'}")
    runner.end()
    return found


def timed(bound: Mapping[str, Timed], rounds: int, end: float, inner: int = INNER) -> dict[str, list[float]]:
    """Return the times of each variant in microseconds: for each round before `end` (of the monotonic clock) the mean
    of `inner` executions. The first round always counts.
    """
    times: dict[str, list[float]] = {label: [] for label in bound}
    labels = [*bound]
    for number in range(rounds):
        if number and time.monotonic() > end:
            break
        turn = number % len(labels)
        for label in labels[turn:] + labels[:turn]:
            times[label] += bound[label].time(1, inner)
    return times


def run(prepared: Path, size: str, rounds: int, seconds: float, out: Path, device_name: str) -> None:
    """Time every kernel in every order and write the record; each kernel gets an equal part of the seconds."""
    device, rows, start = open_device(device_name), list[dict[str, Any]](), time.monotonic()
    with np.load(prepared) as file:
        kernels = json.loads(file["facts"].tobytes())
        for number, one in enumerate(kernels):
            artifact = decode(file[f"artifact_{number}"].tobytes())
            codes = [file[f"code_{number}_{order}"].tobytes() for order in range(len(one["orders"]))]
            found = variants(device, one, artifact, codes, size)
            end = start + seconds * (number + 1) / len(kernels)
            times = timed({label: bound for label, (bound, _) in found.items()}, rounds, end)
            base = statistics.median(times["compiled"])
            for label, (_, facts) in found.items():
                median = statistics.median(times[label])
                print(f"{one['kernel']:16} {label:36} {median:10.1f} us  {base / median:.4f} x", flush=True)
                rows.append({
                    "kernel": one["kernel"], "config": one["config"], "passes": label, "us": times[label], **facts,
                })  # fmt: skip
    record = {"schema": SASS_VARIANTS[1], "command": f"python makers/{SASS_VARIANTS[2]}", "size": size, "arch": ARCH,
              "device": device.describe().name, "inner": INNER, "rows": rows}  # fmt: skip
    out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    preparing = commands.add_parser("prepare")
    preparing.add_argument("kernels", nargs="*", default=KERNELS)
    preparing.add_argument("--out", type=Path, required=True)
    running = commands.add_parser("run")
    running.add_argument("prepared", type=Path)
    running.add_argument("--size", default="4096")
    running.add_argument("--rounds", type=int, default=12)
    running.add_argument("--seconds", type=float, default=60)
    running.add_argument("--device", default="cuda")
    running.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.command == "prepare":
        prepare(given.kernels, given.out)
    else:
        run(given.prepared, given.size, given.rounds, given.seconds, given.out, given.device)
