"""Line tables of a cubin: beside what the disassembler prints of the same cubin."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.kernels.catalog import find_kernel
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse
from gemmlab.toolchain import build_cuda, nvdisasm
from gemmlab.toolchain.line_tables import read_line_tables
from support.cuda_source import compiled, needs_compiler

pytestmark = needs_compiler

NESTED = """__device__ float inner(float x) {
  return x * 3.0f + 1.0f;
}
__device__ float outer(float x) {
  return inner(x) * inner(x + 2.0f);
}
__global__ void probe(float* x) {
  x[threadIdx.x] = outer(x[threadIdx.x]);
  x[threadIdx.x + 32] = inner(x[threadIdx.x + 32]);
}
"""


def printed(cubin: bytes, folder: Path, option: str) -> SassFunction:
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    command = [str(nvdisasm.tool()), option, "-hex", "-c", str(path)]
    (function,) = parse(subprocess.run(command, capture_output=True, text=True, check=True).stdout).values()
    return function


@pytest.mark.in_turns(20)
@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["naive", "conflict_free", "async_copy", "reduce_peak"])
def test_the_disassembler_says_the_same(name: str, tmp_path: Path) -> None:
    kernel = find_kernel(name)
    code = build_cuda.build(kernel.program(kernel.configure({}), "sm_90")).code
    (found,) = read_line_tables(code, name).functions.values()
    function = printed(code, tmp_path, "-gi")
    assert sum(len(found.places(i.address)) > 1 for i in function.instructions) > len(function.instructions) // 2 or (
        name == "naive"
    )
    before = None
    for i in function.instructions:
        places = found.places(i.address)
        assert places[:1] == ((i.line,) if i.line else ())
        # The disassembler prints a chain only where the innermost line changes.
        if i.line != before:
            assert places[1:] == i.inlined_at
        before = i.line
    for i in printed(code, tmp_path, "-gp").instructions:
        assert found.ptx_line(i.address) == (i.line[1] if i.line else 0)


@pytest.mark.in_turns(20)
def test_calls_within_calls_are_told_apart() -> None:
    artifact = compiled(NESTED, "probe")
    tables = read_line_tables(artifact.code, "probe")
    found = tables.functions[artifact.entry]
    chains = {found.places(16 * i) for i in range(len(parse(artifact.texts["sass"])[artifact.entry].instructions))}
    lines = {tuple(line for _, line in chain) for chain in chains}
    assert {(2, 5, 8), (2, 9)} <= lines


def test_the_ptx_is_that_of_the_compiler() -> None:
    artifact = compiled(NESTED, "probe")
    tables = read_line_tables(artifact.code, "probe")
    texts = [line.split("//")[0].split() for line in artifact.texts["ptx"].splitlines()]
    assert all(line.split() in ([], text) for line, text in zip(tables.ptx, texts, strict=False))
    assert sum(bool(line.split()) for line in tables.ptx) > 20
    wanted = {line for _, line in tables.functions[artifact.entry].ptx}
    assert any("st.global" in tables.ptx[line - 1] for line in wanted)


def test_code_without_line_information_has_none() -> None:
    tables = read_line_tables(_stripped(compiled(NESTED, "probe").code), "probe")
    assert dict(tables.functions) == {}
    assert tables.ptx == ()


def test_a_damaged_table_is_refused_by_name() -> None:
    code = bytearray(compiled(NESTED, "probe").code)
    at = code.index(b"probe.cu\0") if b"probe.cu\0" in code else code.index(b"\x01\x01\xfb\x0e")
    code[at - 6 : at + 40] = b"\xff" * 46
    with pytest.raises(UsageError, match="damaged: its line information is malformed"):
        read_line_tables(bytes(code), "damaged")


def _stripped(code: bytes) -> bytes:
    return code.replace(b".debug_line\0", b".Debug_line\0").replace(b".nv_debug_ptx_txt\0", b".nv_Debug_ptx_txt\0")
