"""Kernels in several orders, timed in turns on a GPU, each with the bits of the compiler's code.

    python makers/sass_variants.py [--size 4096] [--rounds 12] [--out sass-variants.json] [KERNEL[:NAME=VALUE...] ...]

For each kernel: the code as compiled, then every choice of passes below. The contestants take turns; a round times
each once, and the median over the rounds counts. A choice whose bits differ is left out and named.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.core.errors import GemmlabError
from gemmlab.devices.device import Device
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import BoundKernel
from gemmlab.kernels.catalog import find_kernel
from gemmlab.sass.ordering.loop_passes import PASSES, ordered
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.verify.changed_code import build_of

ARCH = "sm_90"
CHOICES: tuple[tuple[str, ...], ...] = (
    ("reuse",), ("memory",), ("memory", "reuse"), ("ffma", "reuse"), ("ffma", "reuse", "stalls"),
    ("ffma", "memory", "reuse", "stalls"), ("stalls",), PASSES,
)  # fmt: skip
KERNELS = ("async_copy", "maxas_256", "maxas_64", "thread_tile_2d")
INNER = 5


def variants(device: Device, name: str, config: dict[str, int], size: str) -> dict[str, Any]:
    """Every variant of a kernel that gives the same bits, bound to the same operands, with its facts."""
    build = build_of(find_kernel(name), ARCH, size, config)
    operands = build.operands(device)
    first = build.bind(build.artifact.code, device, operands)
    first.run()
    right = build.result(first)
    found: dict[str, Any] = {
        "compiled": (first, {"digest": build.artifact.digest, "compiler": build.artifact.compiler})
    }
    for choice in CHOICES:
        label = "+".join(choice)
        try:
            made = ordered(build.function, ARCH, choice)
            code = with_words(build.artifact.code, build.function, made.words, made.order, name)
            bound = build.bind(code, device, operands)
            bound.run()
            if not np.array_equal(build.result(bound), right):
                print(f"{name} {label}: other bits")
                continue
        except GemmlabError as error:
            print(f"{name} {label}: {error}")
            continue
        found[label] = bound, {"before": asdict(made.before), "after": asdict(made.after)}
    return found


def timed(bound: dict[str, BoundKernel], rounds: int) -> dict[str, list[float]]:
    """Microseconds by variant, a mean over some executions for each round."""
    times: dict[str, list[float]] = {label: [] for label in bound}
    labels = [*bound]
    for number in range(rounds):
        turn = number % len(labels)
        for label in labels[turn:] + labels[:turn]:
            times[label] += bound[label].time(1, INNER)
    return times


def main(kernels: Sequence[str], size: str, rounds: int, out: Path | None, device_name: str) -> None:
    device, rows = open_device(device_name), []
    for text in kernels:
        name, _, pairs = text.partition(":")
        config = {key: int(value) for key, _, value in (pair.partition("=") for pair in pairs.split(",") if pair)}
        found = variants(device, name, config, size)
        times = timed({label: bound for label, (bound, _) in found.items()}, rounds)
        base = statistics.median(times["compiled"])
        for label, (_, facts) in found.items():
            median = statistics.median(times[label])
            print(f"{name:16} {label:36} {median:10.1f} us  {base / median:.4f} x")
            rows.append({"kernel": name, "config": config, "passes": label, "us": times[label], **facts})
    if out is not None:
        out.write_text(json.dumps({"size": size, "arch": ARCH, "inner": INNER, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", default=KERNELS)
    parser.add_argument("--size", default="4096")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    main(given.kernels, given.size, given.rounds, given.out, given.device)
