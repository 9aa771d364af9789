"""Count on the emulator every configuration that a claim needs, into benchmarks/results/emulated/configs.json.

The claims are decided with the counts so far, and an open one names the configuration that it needs; this is repeated
until none needs another one. `gemmlab bench --device emulated:sm_90` counts the default configurations.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from blocks.claims_page import SOURCES
from blocks.records import RESULTS, load
from claims.claim import finding
from claims.evidence import CONFIG_COUNTS
from gemmlab.core.program import Config
from gemmlab.core.records import Record, save_record
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.observe.counting import Count, count_kernels
from gemmlab.ops.catalog import find_op

DEVICE, SIZE = "emulated:sm_90", "256x256x1024"
"""The device and size of the record of default configurations."""


def main(path: Path) -> int:
    path.unlink(missing_ok=True)
    merged: Record | None = None
    tried: list[tuple[str, Config]] = []
    while wanted := [case for case in missing() if case not in tried]:
        for kernel, config in wanted:
            tried.append((kernel, config))
            print(kernel, *(f"{name}={value}" for name, value in config.items()))
            record = count(kernel, config)
            merged = record if merged is None else replace(merged, results=(*merged.results, *record.results))
        if merged is not None:
            save_record(merged, path)
        load.cache_clear()
    return 0


def missing() -> list[tuple[str, Config]]:
    """Return the kernels and configurations, other than the default ones, whose counts open claims need."""
    found: list[tuple[str, Config]] = []
    for source in SOURCES:
        for claim in source.claims:
            wanted = finding(claim).count
            if wanted is not None and wanted[1] and wanted not in found:
                found.append(wanted)
    return found


def count(kernel: str, config: Config) -> Record:
    op = find_op("gemm")
    return count_kernels(Count(op, open_device(DEVICE), [find_kernel(kernel)], op.parse_sizes(SIZE), config=config))


if __name__ == "__main__":
    sys.exit(main(RESULTS / CONFIG_COUNTS))
