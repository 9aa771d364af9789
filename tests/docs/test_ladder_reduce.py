"""The counters on the reduction's page are those of the emulator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blocks.lacking import recorded
from blocks.records import load
from blocks.reductions import along_axes
from gemmlab.devices.device import CountingDevice
from gemmlab.devices.select import open_device
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import ladder
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.reduce import ReduceOp, ReduceProblem
from gemmlab.verify.guarded_run import GuardedRun

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")
PAGE = Path(__file__).parents[2] / "docs" / "ladder-reduce.md"
N = 1 << 16


def row(kernel: Kernel) -> str:
    op, device = ReduceOp(), open_device("emulated:sm_90")
    assert isinstance(device, CountingDevice)
    problem = ReduceProblem(N)
    placed = place(kernel, device)
    seen = GuardedRun(placed, op, problem, op.fill(problem, np.random.default_rng(0))).run()
    assert seen is not None
    counters = seen.counters
    facts = counters.facts()
    scalars = op.scalars(problem)
    roundings = kernel.roundings(kernel.instantiate(placed.config, scalars), scalars)
    whole = (facts["instructions"], facts["barriers"], facts["shared_load_requests"], facts["shared_load_wavefronts"],
             counters.executed("SHFL"), facts["global_load_requests"])  # fmt: skip
    cells = [f"[`{kernel.id}`](#{kernel.id})", *(f"{value:,.0f}" for value in whole), str(roundings)]
    return f"| {' | '.join(cells)} |"


COUNTED = [kernel for kernel in ladder("reduce", "cuda") if kernel.id in recorded("emulated/reduce.json")]


@pytest.mark.parametrize("kernel", [pytest.param(kernel, id=kernel.id) for kernel in COUNTED])
def test_a_row_is_what_is_counted(kernel: Kernel) -> None:
    assert row(kernel) in PAGE.read_text(encoding="utf-8"), "run `make counts`"


@pytest.mark.in_turns(20)
def test_a_table_of_sums_along_axes_names_arrays() -> None:
    record = load("h200/reduce.json")
    assert record is not None
    results = [
        replace(one, contestant="gemmlab" if one.contestant == "kernel:reduce_peak" else one.contestant,
                label=f"1x{one.label}x1")
        for one in record.results
    ]  # fmt: skip
    table = along_axes(replace(record, results=tuple(results)))
    assert table.startswith("| array | ms |")
    assert "| 1x4096x1 | " in table
    assert "Geometric mean over 12 arrays: " in table
