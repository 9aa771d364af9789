"""The compile sweep as a record: for each configuration, the compiler's resource figures and the occupancy of an SM.

A record has a table for each kernel and architecture with one configuration per line, so that a large file stays
readable.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gemmlab.core import gpu
from gemmlab.core.errors import GemmlabError, RecordError
from gemmlab.core.files import replace_file
from gemmlab.core.program import Config
from gemmlab.core.version import __version__
from gemmlab.kernels.catalog import current_id, find_kernel
from gemmlab.kernels.kernel import NO_MEMORY, Kernel
from gemmlab.kernels.names import without_memory
from gemmlab.ops.catalog import find_op
from gemmlab.precompile.cubins import Compiled
from gemmlab.toolchain.nvrtc import compiler

SCHEMA = "gemmlab.compile-sweep/1"
FIGURES = (
    "registers", "spill_stores", "spill_loads", "smem_bytes", "threads", "code_bytes", "blocks_per_sm",
    "warps_per_sm", "code",
)  # fmt: skip
"""Columns of a table in the record, after those of the parameters. Spills are in bytes per thread, `threads` and shared
memory (static and dynamic, in bytes) per block; `code` is the beginning of the cubin's digest.
"""
_DIGITS = 12
_SIZE = "256"
"""The problem size for which a block's threads and shared memory are computed; they hardly ever depend on it."""


@dataclass(frozen=True, slots=True)
class SweepRow:
    """The figures of one compiled configuration of a kernel for an architecture."""

    kernel: str
    arch: str
    config: Mapping[str, int]
    figures: Mapping[str, Any]
    """Values by the names in `FIGURES`."""


def save_sweep(rows: Sequence[Compiled], errors: Mapping[str, GemmlabError], path: Path) -> None:
    """Write the record of a sweep; `errors` has the errors of jobs that failed, by a name such as `ENTRY for TARGET`.

    Raises `RecordError` if it cannot be written.
    """
    kernels: dict[str, Any] = {}
    for row in rows:
        kernel = find_kernel(row.kernel)
        known = kernels.setdefault(row.kernel, {"params": list(row.config), "archs": {}})
        figures = _figures(kernel, row)
        known["archs"].setdefault(row.arch, []).append([*row.config.values(), *(figures[name] for name in FIGURES)])
    head = {
        "schema": SCHEMA, "gemmlab": __version__, "compiler": compiler(),
        "time_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "figures": list(FIGURES),
        "errors": {name: str(error) for name, error in errors.items()},
    }  # fmt: skip
    try:
        replace_file(path, _text(head, kernels).encode())
    except OSError as error:
        raise RecordError(f"cannot write the record {path}: {error.strerror or error}") from error


def load_sweep(path: Path) -> list[SweepRow]:
    """Return every row of a sweep's record.

    Raises `RecordError` if it cannot be read, is damaged or has another schema.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.get("schema") != SCHEMA:
            raise RecordError(f"{path} is no {SCHEMA}")
        return _rows(data)
    except OSError as error:
        raise RecordError(f"cannot read the record {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RecordError(f"{path} is no {SCHEMA}, or damaged: {error}") from error


def _rows(data: Mapping[str, Any]) -> list[SweepRow]:
    found = []
    for kernel, known in data["kernels"].items():
        kernel_id, names = current_id(kernel, notice=False), known["params"]
        for arch, rows in known["archs"].items():
            for row in rows:
                config, figures = row[: len(names)], row[len(names) :]
                values = dict(zip(data["figures"], figures, strict=True))
                found.append(SweepRow(kernel_id, arch, dict(zip(names, config, strict=True)), values))
    return found


def _figures(kernel: Kernel, row: Compiled) -> dict[str, Any]:
    threads, dynamic_bytes = block_of(kernel, row.config)
    limits, smem_bytes = gpu.limits(row.arch), row.static_smem_bytes + dynamic_bytes
    fit = gpu.occupancy(limits, row.registers, smem_bytes, threads)
    return {
        "registers": row.registers, "spill_stores": row.spill_stores, "spill_loads": row.spill_loads,
        "smem_bytes": smem_bytes, "threads": threads, "code_bytes": row.code_bytes, "blocks_per_sm": fit.blocks,
        "warps_per_sm": fit.warps, "code": row.digest[:_DIGITS],
    }  # fmt: skip


def block_of(kernel: Kernel, instance: Config) -> tuple[int, int]:
    """Return the number of threads and the bytes of dynamic shared memory of a block of an instance, at `_SIZE`."""
    op = find_op(kernel.op)
    (problem,) = op.parse_sizes(_SIZE)
    operands = [operand.name for operand in op.operands(problem)]
    buffers: dict[str, Any] = {name: value for operand in operands for name, value in without_memory(operand).items()}
    launch = kernel.launches(instance, {**op.scalars(problem), **buffers, **NO_MEMORY})[0]
    return int(np.prod(launch.threads)), launch.smem_bytes


def _text(head: Mapping[str, Any], kernels: Mapping[str, Any]) -> str:
    """Return JSON text with one configuration per line."""
    lines = [json.dumps(head, indent=1)[:-2] + ',\n "kernels": {']
    for place, (name, known) in enumerate(kernels.items()):
        lines.append(f'{json.dumps(name)}: {{"params": {json.dumps(known["params"])}, "archs": {{')
        for last, (arch, rows) in enumerate(known["archs"].items()):
            body = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
            lines.append(f"{json.dumps(arch)}: [\n{body}\n]" + ("," if last + 1 < len(known["archs"]) else ""))
        lines.append("}}" + ("," if place + 1 < len(kernels) else ""))
    return "\n".join([*lines, "}\n}"]) + "\n"
