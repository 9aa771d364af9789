"""Asynchronous copies as Nsight Compute counts them: a rule, and the totals of the rung that it must give."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

import profiled
from copy_rule import Copied, counted
from cuda_calls import CudaFile
from probes import COPIES, copies

from gemmlab.core.trace import Access, Trace, TraceRequest
from gemmlab.devices.emulated import EmulatedDevice, EmulatedLoaded
from gemmlab.kernels.catalog import find_kernel
from gemmlab.measure.run import bind
from gemmlab.ops.gemm import GemmOp, GemmProblem

PROFILED = profiled.PATH.with_name("ncu.json")
SIZE = 512


def pairs(trace: Trace) -> Iterator[tuple[Access, Access]]:
    """Read and write of each copy."""
    found = [access for access in trace.accesses if access.site.base_opcode == "LDGSTS"]
    assert len(found) % 2 == 0
    for read, write in zip(found[::2], found[1::2], strict=True):
        assert (read.space, write.space, read.order) == ("global", "shared", write.order)
        yield read, write


def by_rule(trace: Trace) -> Copied:
    total = Copied()
    for read, write in pairs(trace):
        lanes = [(read.addresses[lane], write.addresses[lane]) for lane in read.lanes]
        total += counted(read.site.text, read.width, lanes)
    return total


def test_the_rule_gives_what_was_profiled_of_a_rung() -> None:
    launches = json.loads(PROFILED.read_text(encoding="utf-8"))["launches"]
    label = f"{SIZE}x{SIZE}x{SIZE}"
    (launch,) = (one for one in launches if one["contestant"] == "kernel:async_copy" and one["size"] == label)
    op, problem, device = GemmOp(), GemmProblem(SIZE, SIZE, SIZE), EmulatedDevice("sm_90")
    arrays = {name: array.reshape(-1) for name, array in op.fill(problem, np.random.default_rng(1)).items()}
    bound = bind(find_kernel("async_copy"), device, op, problem, arrays, config=launch["facts"]["config"])
    if bound.loaded.artifact.digest != launch["facts"]["code_sha256"]:
        pytest.skip(f"async_copy has changed since, or {bound.loaded.artifact.compiler} makes other code of it")
    (call,) = bound.launches
    assert isinstance(bound.loaded, EmulatedLoaded)
    trace = device.trace(bound.loaded, call, TraceRequest(blocks=(0,), most_steps=1 << 21, most_accesses=1 << 16))
    assert trace.lost == 0
    blocks = call.grid[0]
    rule = by_rule(trace)
    others = [site for site in trace.observation.counters.sites if site.base_opcode != "LDGSTS"]
    assert launch["counts"]["memory_l1_wavefronts_shared"] == blocks * rule.wavefronts + sum(
        site.wavefronts for site in others
    )
    assert launch["counts"]["memory_l1_wavefronts_shared_ideal"] == blocks * rule.ideal + sum(
        site.wavefronts_ideal for site in others
    )
    assert launch["counts"]["memory_l2_theoretical_sectors_global"] == blocks * rule.sectors + sum(
        site.sectors for site in others
    )
    read = launch["metrics"]["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
    assert read == blocks * rule.read
    assert not [site for site in others if site.base_opcode == "LDG" and site.executed]


def test_a_swizzle_within_lines_costs_nothing() -> None:
    lanes = [(16 * lane, 16 * (lane ^ 3)) for lane in range(32)]
    assert counted("LDGSTS.E.BYPASS.LTC128B.128 [R3], desc[UR22][R222.64]", 16, lanes) == Copied(4, 4, 16, 16)


@pytest.mark.parametrize(
    ("rows", "pitch", "expected"),
    [
        # 512 bytes in a row: at a line's beginning, and 16, 32 and 48 bytes behind one.
        (1, 0, Copied(4, 4, 16, 16)), (1, 16, Copied(12, 4, 32, 20)), (1, 32, Copied(8, 4, 16, 16)),
        (1, 48, Copied(16, 4, 32, 20)),
        # Eight rows of 64 bytes that lie 80 apart, each second one in halves of sectors.
        (8, 80, Copied(15, 4, 24, 20)),
    ],
)  # fmt: skip
def test_sectors_that_land_in_two_cost_wavefronts(rows: int, pitch: int, expected: Copied) -> None:
    lanes = []
    for lane in range(32):
        row, column = divmod(16 * lane, 512 // rows)
        lanes.append((4096 * row + column, (pitch if rows == 1 else row * pitch) + column))
    assert counted("LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64]", 16, lanes) == expected
    assert counted("@P0 LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64]", 16, lanes) == Copied(read=expected.read)


def test_every_probe_of_a_copy_runs_and_is_as_profiled_where_it_was() -> None:
    device = EmulatedDevice("sm_90")
    file, wrong = CudaFile(device, COPIES), []
    for probe in copies():
        ran = file.run(probe.kernel, probe.grid, probe.threads, probe.args)
        assert not [hazard for hazard in ran.hazards if hazard.kind != "race"], probe.name
        assert ran.counters is not None
        (site,) = (site for site in ran.counters.sites if site.base_opcode == "LDGSTS")
        assert (site.executed, site.requests) == (1, 1)
        source, target = (4 * np.asarray(words) for words in probe.args[:2])
        rule = counted(site.text, int(probe.kernel[5:].partition(",")[0]), list(zip(source, target, strict=True)))
        for row in profiled.rows(probe.name):
            if row.address == site.address and "memory_l1_wavefronts_shared" in row.values:
                names = ("wavefronts_shared", "wavefronts_shared_ideal")
                seen = [row.values[f"memory_l1_{name}"] for name in names]
                seen.append(row.values["memory_l2_theoretical_sectors_global"])
                if seen != [rule.wavefronts, rule.ideal, rule.sectors]:
                    wrong.append((probe.name, seen, rule))
    assert not wrong
