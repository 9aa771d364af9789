"""Machine code that goes astray, or names what there is not, is a hazard or an error, never the end of the process."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import CompileError, UsageError
from gemmlab.core.hazard import Hazard
from gemmlab.core.program import Artifact, Launch
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.emulator.form import UnsupportedError
from gemmlab.emulator.handlers import _emit, handler_addresses
from gemmlab.emulator.isa import table
from gemmlab.emulator.layout import Warp
from gemmlab.emulator.operand_limits import require_named
from gemmlab.ir.target import host_target
from gemmlab.toolchain.cubin import read_cubin
from gemmlab.toolchain.elf import read_elf
from gemmlab.toolchain.nv_info import REGISTERS
from support.cuda_source import compiled, needs_compiler
from support.isa_harness import Rig, instruction, program
from support.sass_corpus import everything

ARCHITECTURES = ("sm_80", "sm_89", "sm_90")
SOURCE = """
#include <cuda_pipeline.h>
__device__ __noinline__ void one(float* p) { p[0] = 1; }
__device__ __noinline__ void two(float* p) { p[0] = 2; }
__device__ void (*either[2])(float*) = {one, two};
__constant__ int tens[4] = {10, 20, 30, 40};

extern "C" __global__ void through(unsigned long long f, float* p) { ((void (*)(float*))f)(p); }
extern "C" __global__ void table(int i, float* p) { either[i](p); }
extern "C" __global__ void copies(const int4* from, int* to, int n) {
    __shared__ int4 here[32];
    for (int i = 0; i < n; ++i) __pipeline_memcpy_async(&here[threadIdx.x], from + 32 * i + threadIdx.x, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    to[threadIdx.x] = here[threadIdx.x].x;
}
extern "C" __global__ void plain(int i, int* p) { p[threadIdx.x] = tens[i] + threadIdx.x; }
"""


def hazards(arch: str, kernel: str, *args: Any) -> tuple[Any, tuple[Hazard, ...]]:
    done: Any = gemmlab.launch(SOURCE, kernel, 1, 32, args, device=f"emulated:{arch}")
    return done.outputs[0], done.hazards


def ran(artifact: Artifact) -> tuple[Hazard, ...]:
    """The hazards of `plain`, of this machine code."""
    device = EmulatedDevice("sm_90")
    buffer = device.upload(np.zeros(32, np.int32))
    return device.observe(device.load(artifact), Launch((np.int32(1), buffer), (1, 1, 1), (32, 1, 1))).hazards


def printed(*changes: tuple[str, str]) -> Artifact:
    """`plain` with its disassembly changed."""
    artifact = compiled(SOURCE, "plain")
    head, mark, body = artifact.texts["sass"].partition(".text.plain:\n")
    for old, new in changes:
        assert old in body
        body = body.replace(old, new, 1)
    return replace(artifact, texts={**artifact.texts, "sass": head + mark + body})


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("address", [0, 1, 7, 0x1000, 0xFFF8, 2**31, 2**47 - 1, 2**64 - 16])
def test_a_call_to_an_address_that_is_no_function_is_a_hazard(arch: str, address: int) -> None:
    p, (hazard,) = hazards(arch, "through", np.uint64(address), np.zeros(4, np.float32))
    assert (hazard.kind, hazard.message) == ("call", "a call to an address that is no function")
    assert hazard.line == 8
    assert not p.any()


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_calls_by_the_addresses_of_functions_are_none(arch: str) -> None:
    found = [hazards(arch, "table", i, np.zeros(4, np.float32)) for i in (0, 1)]
    assert [(p[0], seen) for p, seen in found] == [(1, ()), (2, ())]


@pytest.mark.in_turns(20)
@needs_compiler
def test_code_without_an_end_stops_behind_its_last_instruction() -> None:
    artifact = compiled(SOURCE, "plain")
    head, mark, body = artifact.texts["sass"].partition(".text.plain:\n")
    # Every exit and every loop of padding is gone.
    body = body.replace("EXIT ", "NOP ").replace("BRA", "BSSY B0,")
    (hazard,) = ran(replace(artifact, texts={**artifact.texts, "sass": head + mark + body}))
    assert (hazard.kind, hazard.message) == ("call", "it goes to where no instruction is")


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "EXIT ",
            "@P0 IADD3 R254, R254, R254, RZ ",
            r"plain: damaged: its code names R254, and its attributes give it",
        ),
        ("EXIT ", "IADD3 R2, R300, R2, RZ ", r"names reg 300, which there is not|its code names R300"),
        ("EXIT ", "MOV R2, c[0x8][0x0] ", r"names constant bank 8, which there is not"),
        ("EXIT ", "MOV R2, c[0x0][0x10000] ", r"names a constant at 0x10000, which there is not"),
        ("EXIT ", "MOV R2, c[0x0][-0x8001] ", r"names a constant at -0x8001, which there is not"),
        ("EXIT ", "BSYNC B16 ", r"names barrier 16, which there is not"),
        ("EXIT ", "@P9 NOP ", r"names pred 9, which there is not"),
    ],
)
def test_what_there_is_not_is_refused_when_the_code_is_loaded(old: str, new: str, why: str) -> None:
    with pytest.raises(CompileError, match=why):
        EmulatedDevice("sm_90").load(printed((old, new)))


def test_each_kind_of_number_is_compared() -> None:
    for text in (
        "UMOV UR64, 0x1",
        "PLOP3.LUT P8, PT, PT, PT, PT, 0x80, 0x0",
        "LDG.E R2, [R256.64]",
        "S2R R256, SR_TID.X",
    ):
        with pytest.raises(CompileError, match="which there is not"):
            require_named("f", [instruction(text)])
    require_named("f", [instruction("IADD3 R254, PT, PT, RZ, R2, RZ"), instruction("LDG.E R2, desc[UR62][R2.64]")])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("MUFU R4, R2", "RCP, RSQ"),
        ("SHFL PT, R4, R2, R3, 0x1f", "IDX, UP, DOWN, BFLY"),
        ("ISETP.AND P0, PT, R4, R2, PT", "LT, LE"),
        ("ISETP.U32.AND.EX P0, PT, R4, R2, PT, P1", "LT, LE"),
        ("FSETP.AND P0, PT, R4, R2, PT", "LT, LE"),
        ("VOTE P0, P1", "ANY, ALL, EQ"),
        ("MATCH R4, R2", "ANY, ALL"),
        ("QSPC.E P0, RZ, [R2]", "S, L, G, D"),
        ("IMMA.S8.S8 R4, R8.ROW, R10.COL, R4", "16832, 16816, 8816"),
        ("DMMA R4, R8, R10, R4", "884, 8x8x4"),
        ("HMMA.F32 R4, R8, R10, R4", "16816, 1688"),
        ("HGMMA R24, gdesc[UR4], R24, gsb0", "a size of nothing"),
        ("FCHK R4, R2", "0 result predicates, not 1"),
        ("HSETP2.GT.AND P0, R4, R2, PT", "1 result predicates, not 2"),
        ("ATOMS.POPC.INC.32.64 RZ, [R2]", ""),
    ],
)
def test_an_instruction_that_lacks_a_modifier_is_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=rf"^no meaning for '{re.escape(text)}'.*{why}"):
        handler_addresses([instruction(text)])


def test_what_is_left_of_an_instruction_is_executed_or_refused() -> None:
    forms = {table.form_key(one): one for _arch, _where, one in everything() if one.opcode in table.TABLE}
    refused = 0
    for whole in forms.values():
        for place in range(len(whole.modifiers)):
            rest = replace(whole, modifiers=whole.modifiers[:place] + whole.modifiers[place + 1 :])
            try:
                _emit("handler", rest, host_target())
            except UnsupportedError:
                refused += 1
    assert refused > 100


@needs_compiler
def test_fewer_registers_than_the_code_names_are_refused() -> None:
    artifact = compiled(SOURCE, "plain")
    code = bytearray(artifact.code)
    (info,) = (section for section in read_elf(artifact.code, "plain").sections if section.name == ".nv.info")
    start, number = artifact.code.find(info.data), 0
    for at in range(start, start + len(info.data), 4):
        form, attribute, size = struct.unpack_from("<BBH", code, at)
        if (form, attribute, size) == (4, REGISTERS, 8):
            struct.pack_into("<I", code, at + 8, 1)
            number += 1
    assert number
    with pytest.raises(CompileError, match=r"plain: damaged: its code names R[0-9]+, and its attributes give it 1"):
        EmulatedDevice("sm_90").load(replace(artifact, code=bytes(code)))


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("count", [128, 129, 400])
def test_copies_that_are_never_committed_have_room(count: int) -> None:
    source = np.arange(32 * 4 * count, dtype=np.int32)
    done: Any = gemmlab.launch(
        SOURCE, "copies", 1, 32, [source, np.zeros(32, np.int32), count], device="emulated:sm_90"
    )
    assert (done.outputs[1] == source.reshape(count, 32, 4)[-1, :, 0]).all()


def test_a_barrier_that_no_lane_waits_at_holds_nobody() -> None:
    rig = Rig()
    rig.execute(program("BSSY B0, `(.L_end)", ".L_end:")[0])
    for _ in range(100):
        rig.run("BSYNC P0, B0")
    assert int(rig.warp[Warp.GROUPS : Warp.GROUPS + 8].view(np.int64)[0]) == 0


@needs_compiler
@pytest.mark.parametrize("field", ["symbol", "offset", "end"])
def test_a_relocation_that_leads_nowhere_is_refused(field: str) -> None:
    code = bytearray(compiled(SOURCE, "table").code)
    sections = read_elf(bytes(code), "x").sections
    (table,) = (s for s in sections if s.name == ".rela.nv.constant4")
    at = bytes(code).find(table.data)
    if field == "symbol":
        struct.pack_into("<I", code, at + 12, 0xFFFFFFF0)
    else:
        # An address has eight bytes: its last four would lie behind the section's end.
        struct.pack_into("<Q", code, at, 0xFFFFFFF0 if field == "offset" else sections[table.info].size - 4)
    with pytest.raises(UsageError, match=r"mine\.cubin: a malformed cubin: \.rela\.nv\.constant4 patches 8 bytes from"):
        read_cubin(bytes(code), "mine.cubin")
