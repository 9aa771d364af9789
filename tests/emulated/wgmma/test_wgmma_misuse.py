"""Misuse of wgmma's registers and of setmaxnreg is reported with its lines: in PTX, and in machine code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

import gemmlab
from gemmlab.core.errors import CompileError
from gemmlab.core.hazard import Hazard
from gemmlab.core.program import Artifact, Launch, Program
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.toolchain.build_cuda import build
from gemmlab.toolchain.ptxas_log import serialized, setmaxnreg_ignored

FILE = Path(__file__).with_name("wgmma_misuse.cu")
LINES = FILE.read_text().splitlines()


def line_of(text: str) -> int:
    (found,) = (number for number, line in enumerate(LINES, 1) if text in line)
    return found


STATEMENT = line_of('asm volatile("wgmma.mma_async')


def hazards(kernel: str, threads: int = 128) -> tuple[Hazard, ...]:
    """Those of a launch."""
    done = gemmlab.launch(
        FILE, kernel, args=[np.ones(512, np.float32)], grid=1, threads=threads, device="emulated:sm_90a"
    )
    return done.hazards or ()


def artifact(kernel: str) -> Artifact:
    """A kernel's code."""
    return build(Program(kernel, "cuda", "sm_90a", kernel, kernel, FILE.read_text, path=str(FILE)))


def edited(kernel: str, old: str, new: str, count: int) -> tuple[Hazard, ...]:
    """Hazards of the machine code with an instruction of its text exchanged."""
    made = artifact(kernel)
    parts = made.texts["sass"].split(f".text.{kernel}:")
    assert old in parts[1]
    text = f".text.{kernel}:".join((parts[0], parts[1].replace(old, new, count)))
    device = EmulatedDevice("sm_90a")
    loaded = device.load(replace(made, texts={"sass": text, "ptx": made.texts["ptx"]}))
    buffer = device.upload(np.ones(512, np.float32))
    return device.observe(loaded, Launch((buffer,), (1, 1, 1), (128, 1, 1), 0)).hazards


@pytest.mark.in_turns(20)
def test_right_use_has_no_hazard() -> None:
    assert hazards("right") == ()
    assert edited("right", "WARPGROUP.ARRIVE", "WARPGROUP.ARRIVE", 1) == ()


@pytest.mark.in_turns(20)
def test_a_missing_fence_in_ptx_is_reported_though_ptxas_put_one_in() -> None:
    (found,) = hazards("no_fence")
    assert (found.kind, found.line) == ("wgmma", STATEMENT)
    assert "without wgmma.fence" in found.message
    (found,) = hazards("late_write")
    assert (found.line, found.other_line) == (STATEMENT, line_of("// written"))


def test_a_missing_wait_in_ptx_is_reported_though_ptxas_put_one_in() -> None:
    (found,) = hazards("no_wait")
    assert found.kind == "wgmma"
    assert "used before wgmma.wait_group" in found.message
    assert found.line == line_of("x[threadIdx.x * 4 + i] = d[i]")


def test_machine_code_without_a_wait_is_reported() -> None:
    found = edited("right", "WARPGROUP.DEPBAR.LE gsb0, 0x0 ", "NOP ", 1)
    assert {hazard.kind for hazard in found} == {"wgmma"}
    assert any("no wgmma.wait_group before it" in hazard.message for hazard in found)
    assert {hazard.other_line for hazard in found} == {STATEMENT}


def test_machine_code_without_a_fence_is_reported() -> None:
    found = edited("right", "WARPGROUP.ARRIVE ", "NOP ", 2)
    assert all("no wgmma.fence is between" in hazard.message for hazard in found)
    assert {hazard.other_line for hazard in found} == {STATEMENT}
    writes = "d[i] = x[threadIdx.x * 4 + i];", "d[i] *= 0.5f;"
    assert {hazard.line for hazard in found} == {
        next(number for number, line in enumerate(LINES, 1) if line.endswith(text)) for text in writes
    }


def test_a_multiplication_by_some_lanes_is_reported() -> None:
    found = hazards("some_lanes")
    assert any(hazard.kind == "warpgroup" and "16 lanes" in hazard.message for hazard in found)


def test_a_warpgroup_that_lacks_a_warp_is_reported() -> None:
    found = hazards("three_warps")
    assert {hazard.kind for hazard in found} == {"warpgroup"}
    assert "the warp of thread 96 has ended" in found[0].message
    alone, deadlock = hazards("stuck_warp")
    assert deadlock.kind == "deadlock"
    assert f"lacks of warp 3, which is at line {line_of('// stuck')}" in alone.message
    calls = line_of("wait(); // alone"), line_of("__syncthreads(); // stuck") - 1
    assert alone.called_from == ", from ".join(f"{FILE.name}:{line}" for line in calls)


def test_a_warp_that_ends_with_a_multiplication_in_flight_is_reported() -> None:
    found = edited("late_write", "WARPGROUP.DEPBAR.LE gsb0, 0x0 ", "NOP ", 2)
    assert any("the warp ends while" in hazard.message for hazard in found), [hazard.explain() for hazard in found]


def test_registers_that_the_kernel_does_not_have_are_damaged_code() -> None:
    with pytest.raises(CompileError, match="damaged: its code names R5"):
        edited("right", "HGMMA.64x8x16.F32 R24", "HGMMA.64x64x16.F32 R24", 1)


def test_registers_beyond_the_pool_are_reported() -> None:
    assert hazards("fair", 384) == ()
    found = hazards("greedy", 384)
    assert {hazard.kind for hazard in found} == {"setmaxnreg", "deadlock"}
    assert {hazard.line for hazard in found} == {line_of("// taken")}


def test_what_ptxas_did_otherwise_is_a_remark_with_its_line() -> None:
    texts = artifact("serialized").texts
    found = serialized(texts["log"], texts["ptx"], "serialized")
    assert found is not None
    assert "accumulator registers" in found.text
    assert found.place.startswith("wgmma_misuse.cu:")
    assert serialized(texts["log"], texts["ptx"], "right") is None
    ignored = setmaxnreg_ignored(texts["log"], texts["ptx"], "ignored")
    assert ignored is not None
    assert "register count" in ignored.text
    assert ignored.place == f"wgmma_misuse.cu:{line_of('// ignored')}"
    assert setmaxnreg_ignored(texts["log"], texts["ptx"], "right") is None


def test_only_the_kernel_whose_setmaxnreg_is_ignored_has_the_remark() -> None:
    said = {}
    for kernel, threads in (("ignored", 128), ("fair", 384)):
        done = gemmlab.launch(FILE, kernel, 1, threads, [np.zeros(512, np.float32)], device="emulated:sm_90a")
        said[kernel] = [line for line in str(done.explain()).splitlines() if "ptxas ignored setmaxnreg" in line]
    assert len(said["ignored"]) == 1
    assert f"wgmma_misuse.cu:{line_of('// ignored')}" in said["ignored"][0]
    assert said["fair"] == []
