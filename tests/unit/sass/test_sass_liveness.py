"""Live registers: by hand, and beside the disassembler's own life ranges for compiled kernels."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gemmlab.kernels.catalog import find_kernel
from gemmlab.sass.liveness import live_registers
from gemmlab.sass.parse import parse
from gemmlab.sass.vector_registers import registers_of
from gemmlab.toolchain import build_cuda, nvdisasm
from support.cuda_source import needs_compiler
from support.sass_corpus import written

_COUNT = re.compile(r"\s+/\*([0-9a-f]{4,})\*/.*// \|\s*(\d*)")


def live(*lines: str) -> list[list[int]]:
    return [sorted(found) for found in live_registers(written(*lines))]


def test_a_range_ends_at_the_last_read() -> None:
    assert live("MOV R2, 0x1", "MOV R3, R2", "STG.E [R4.64], R3", "EXIT") == [[2, 4, 5], [2, 3, 4, 5], [3, 4, 5], []]


def test_a_predicated_result_ends_nothing() -> None:
    assert live("@P0 MOV R2, 0x1", "STS [R3], R2", "EXIT")[0] == [2, 3]
    assert live("MOV R2, 0x1", "STS [RZ], R2", "EXIT")[0] == [2]
    first = live("MOV R9, RZ", "MOV R2, 0x1", "STS [R9], R2", "EXIT")[0]
    assert first == [9], "an unconditional result is not live above it"


def test_a_loop_carries_what_it_reads() -> None:
    found = live("MOV R1, RZ", "a: FFMA R4, R5, R6, R4", "@P0 BRA `(.L_a)", "STS [RZ], R4", "EXIT")
    assert found[2] == [1, 4, 5, 6]


def test_what_a_call_does_not_touch_lives_on() -> None:
    found = live(
        "MOV R7, RZ", "MOV R4, RZ", "CALL.REL.NOINC `($f$g)", "STS [R7], R4", "EXIT",
        "$f$g: IADD3 R4, R4, R5, RZ", "RET.REL.NODEC R20 `(f)",
    )  # fmt: skip
    assert found[2] == [4, 5, 7, 20, 21]
    assert found[0] == [5, 7, 20, 21]


def test_a_predicated_call_ends_nothing() -> None:
    rest = ["STS [R7], R4", "EXIT", "$f$g: MOV R4, 0x1", "RET.REL.NODEC R20 `(f)"]
    assert live("MOV R7, R9", "CALL.REL.NOINC `($f$g)", *rest)[0] == [7, 9, 20, 21]
    assert live("MOV R7, R9", "@P0 CALL.REL.NOINC `($f$g)", *rest)[0] == [4, 7, 9, 20, 21]


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("LDG.E.128 R4, desc[UR6][R2.64+0x10]", {2, 3}, {4, 5, 6, 7}),
        ("STG.E.64 desc[UR6][R2.64], R8", {2, 3, 8, 9}, set()),
        ("LDGSTS.E.BYPASS.128 [R3], desc[UR4][R6.64]", {3, 6, 7}, set()),
        ("IMAD.WIDE R2, R4, R5, R6", {4, 5, 6, 7}, {2, 3}),
        ("HMMA.1684.F32.TF32 R36, R6, R141, R36", {6, 7, 141, 36, 37, 38, 39}, {36, 37, 38, 39}),
        ("DFMA R2, R4, R6, R8", {4, 5, 6, 7, 8, 9}, {2, 3}),
        ("F2F.F64.F32 R2, R4", {4}, {2, 3}),
        ("F2I.FTZ.U32.TRUNC.NTZ R3, R2", {2}, {3}),
        ("LDSM.16.M88.4 R4, [R2]", {2}, {4, 5, 6, 7}),
        ("ISETP.GE.AND P0, PT, R0, R1, PT", {0, 1}, set()),
        ("HGMMA.64x16x8.F32.TF32 R24, gdesc[UR8], R24, gsb0", set(range(24, 32)), set(range(24, 32))),
        ("HGMMA.64x16x8.F32.TF32 R24, R4, gdesc[UR8], RZ, !UPT", {4, 5, 6, 7}, set(range(24, 32))),
        ("HGMMA.64x16x16.F16 R24, gdesc[UR8], R24, gsb0", {24, 25, 26, 27}, {24, 25, 26, 27}),
        ("IGMMA.64x16x32.S8.S8 R24, gdesc[UR8], R24, gsb0", set(range(24, 32)), set(range(24, 32))),
        ("BMMA.168256.AND.POPC R12, R4.ROW, R8.COL, RZ", {4, 5, 6, 7, 8, 9}, {12, 13, 14, 15}),
        ("BMMA.88128.AND.POPC R12, R4.ROW, R8.COL, R12", {4, 8, 12, 13}, {12, 13}),
        ("QMMA.16832.F32.E4M3.E5M2 R8, R4.ROW, R12.COL, R8", {*range(4, 14)}, {8, 9, 10, 11}),
        ("HMMA.SP.16832.F32 R8, R4, R12, R8, R3, 0x0", {3, *range(4, 16)}, {8, 9, 10, 11}),
        ("STSM.16.M88.4 [R2], R4", {2, 4, 5, 6, 7}, set()),
        ("I2F.U64.RP R3, R4", {4, 5}, {3}),
        ("I2F.F64.U64 R2, R4", {4, 5}, {2, 3}),
        ("F2I.F64.FLOOR R3, R4", {4, 5}, {3}),
        ("F2I.U64.TRUNC R2, R4", {4}, {2, 3}),
        ("VOTE.ANY R3, PT, PT", set(), {3}),
        ("MATCH.ANY.U64 R3, R4", {4, 5}, {3}),
        ("ATOMG.E.ADD.F64.RN.STRONG.GPU PT, R2, desc[UR4][R4.64], R6", {4, 5, 6, 7}, {2, 3}),
        ("ATOMG.E.CAS.64.STRONG.GPU PT, R4, [R8], R10, R12", set(range(8, 14)), {4, 5}),
        ("ATOMS.POPC.INC.32 RZ, [R4]", {4}, set()),
        ("LDG.E.SYS R2, [R4]", {4, 5}, {2}),
        ("LDG.E R2, [R4.U32+UR6]", {4}, {2}),
        ("SYNCS.ARRIVE.TRANS64.A1T0 R2, [R4+URZ], RZ", {4}, {2, 3}),
        ("STAS.64 [R2.64], R4", {2, 4}, set()),
    ],
)
def test_widths_of_operands(line: str, reads: set[int], writes: set[int]) -> None:
    found_reads, found_writes = registers_of(written(line).instructions[0])
    assert (set(found_reads), set(found_writes)) == (reads, writes)


def counted_by_nvdisasm(cubin: bytes, folder: Path) -> dict[str, dict[int, int]]:
    """Function -> address -> occupied registers."""
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    done = subprocess.run([str(nvdisasm.tool()), "-plr", "-c", str(path)], capture_output=True, text=True, check=True)
    found: dict[str, dict[int, int]] = {}
    function = ""
    for line in done.stdout.splitlines():
        if header := re.match(r"\.text\.(\S+):", line):
            function = header[1]
        elif row := _COUNT.match(line):
            found.setdefault(function, {})[int(row[1], 16)] = int(row[2] or 0)
    return found


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "arch"),
    [("conflict_free", "sm_90"), ("wgmma_tf32", "sm_90a"), ("mma_tf32_pipelined", "sm_90"), ("conflict_free", "sm_80"),
     ("reduce_peak", "sm_90"), ("double_buffer", "sm_89"), ("tma_pipeline", "sm_90a")],
)  # fmt: skip
def test_the_disassembler_counts_the_same(name: str, arch: str, tmp_path: Path) -> None:
    # None of these has a call, which the disassembler treats as if it read every argument register there is.
    kernel = find_kernel(name)
    artifact = build_cuda.build(kernel.program(kernel.configure({}), arch))
    expected = counted_by_nvdisasm(artifact.code, tmp_path)
    for function in parse(artifact.texts["sass"]).values():
        found = live_registers(function)
        code = [i for i in function.instructions if i.opcode != "NOP"]
        ours = {i.address: len(registers) for i, registers in zip(function.instructions, found, strict=True)}
        theirs = expected[function.name]
        fewer = [(hex(i.address), i.text) for i in code if ours[i.address] < theirs[i.address]]
        assert fewer == []
        # The disassembler also follows predicates: a result and its reader under the same one make a shorter range.
        assert sum(ours[i.address] > theirs[i.address] for i in code) <= len(code) / 50
