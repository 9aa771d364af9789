"""The cubin reader, against kernels whose layout is known and files that are damaged."""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab.core.errors import UsageError
from gemmlab.toolchain.cubin import Cubin, CubinFunction, read_cubin
from gemmlab.toolchain.nv_info import Param
from gemmlab.toolchain.ptxas_log import facts_of
from support.cuda_source import ARCHITECTURES, compiled, needs_compiler
from support.paths import DATA

pytestmark = needs_compiler

SOURCE = """
__constant__ float table[32] = {1.f, 2.f, 3.f};
__constant__ int bare[8];
__device__ int counter = 42;
__device__ float scratch[100];
__device__ const float weights[4] = {0.5f, 0.25f, 0.125f, 1.f};
__device__ float* where = scratch + 3;
struct Args { int a; char c; double d; float v[3]; };
struct Large { float v[1500]; };
__device__ __noinline__ float helper(float x, int n) {
  for (int i = 0; i < n; i++) x = x * 1.5f + table[i & 31];
  return x;
}
__device__ __noinline__ int deep(int n) {
  volatile int local[16];
  for (int i = 0; i < n; ++i) local[i & 15] = i * n;
  return n < 2 ? local[0] : local[n & 15] + deep(n - 1);
}
__device__ __noinline__ float other(float x, int n) { return x - n; }
typedef float (*Call)(float, int);
__device__ Call calls_table[2] = {helper, other};
extern __shared__ float dynamic_floats[];

extern "C" {
__global__ void __launch_bounds__(128) variables(float* out, Args args, char tail) {
  out[threadIdx.x] = table[threadIdx.x & 31] + bare[args.a & 7] + args.d + tail + weights[threadIdx.x & 3];
  atomicAdd(&counter, 1);
  where[threadIdx.x] = scratch[threadIdx.x];
}
__global__ void shared(float* out, int n) {
  __shared__ float fixed[100];
  __shared__ double wide[50];
  fixed[threadIdx.x] = wide[threadIdx.x] = dynamic_floats[threadIdx.x] = n;
  __syncthreads();
  out[threadIdx.x] = dynamic_floats[n] + fixed[n] + wide[n];
}
__global__ void textured(float* out, cudaTextureObject_t texture, int n) {
  out[threadIdx.x] = tex1Dfetch<float>(texture, n + threadIdx.x);
}
__global__ void recursive(float* out, int n) { out[threadIdx.x] = helper(out[threadIdx.x], n) + deep(n); }
__global__ void indirect(float* out, int n) { out[threadIdx.x] = calls_table[n & 1](out[threadIdx.x], n); }
__global__ void large(float* out, const __grid_constant__ Large b, double* q, short tail) {
  out[threadIdx.x] = b.v[threadIdx.x] + tail + *q;
}
__global__ void switches(int* out, int n) {
  switch (n) {
    case 0: out[0] = 1; break;
    case 1: out[1] = 5 * out[2]; break;
    case 2: out[7] = out[3]; break;
    case 3: out[n] *= out[2]; break;
    case 4: out[9] ^= 1; break;
    case 5: out[2] |= out[1]; break;
    case 6: out[4] = __popc(out[5]); break;
  }
}
__global__ void prints(int n) { printf("%d\\n", n); }
__global__ void nothing() {}
#if __CUDA_ARCH__ >= 900
__global__ void __block_size__((64, 2, 1)) shaped(float* out) { out[threadIdx.x] = 1; }
#endif
}
"""
KERNELS = {
    "variables", "shared", "textured", "recursive", "indirect", "large", "switches", "prints", "nothing",
}  # fmt: skip
ANY = pytest.mark.parametrize("arch", ARCHITECTURES)


def read(arch: str) -> Cubin:
    return read_cubin(compiled(SOURCE, "nothing", arch).code, "probe")


@ANY
def test_every_kernel_is_there_with_the_architecture(arch: str) -> None:
    cubin = read(arch)
    assert cubin.arch == arch
    assert KERNELS | ({"shaped"} if int(arch[3:].rstrip("a")) >= 90 else set()) == set(cubin.functions)
    assert all(function.entry and len(function.code) % 16 == 0 for function in cubin.functions.values())


@ANY
def test_code_is_what_the_disassembler_shows(arch: str) -> None:
    sass = compiled(SOURCE, "nothing", arch).texts["sass"]
    for name, function in read(arch).functions.items():
        section = sass.split(f"\n.text.{name}:\n", 1)[1].split("\n//----", 1)[0]
        words = [int(word, 16) for word in re.findall(r"/\* (0x[0-9a-f]{16}) \*/", section)]
        assert len(words) > 4
        assert function.code == struct.pack(f"<{len(words)}Q", *words)


@ANY
def test_parameters_lie_where_the_code_reads_them(arch: str) -> None:
    functions = read(arch).functions
    assert functions["variables"].params == (Param(0, 8), Param(8, 32), Param(40, 1))
    assert functions["textured"].params == (Param(0, 8), Param(8, 8), Param(16, 4))
    assert functions["large"].params == (Param(0, 8), Param(8, 6000), Param(6008, 8), Param(6016, 2))
    assert functions["nothing"].params == ()
    assert [functions[name].param_bytes for name in ("variables", "large", "nothing")] == [41, 6018, 0]
    for function in functions.values():
        assert len(function.constants[0]) == function.param_base + function.param_bytes
        text = compiled(SOURCE, "nothing", arch).texts["sass"].split(f"\n.text.{function.name}:\n", 1)[1]
        read_at = {int(at, 16) for at in re.findall(r"c\[0x0\]\[(0x[0-9a-f]+)\]", text.split("\n//----", 1)[0])}
        if function.params:
            assert function.param_base in read_at or function.name == "prints", function.name
            assert max(read_at) < len(function.constants[0])


@ANY
def test_resources_are_those_of_the_compilers_log(arch: str) -> None:
    log = compiled(SOURCE, "nothing", arch).texts["log"]
    for name, function in read(arch).functions.items():
        facts = facts_of(log, name)
        assert function.registers == facts["registers"]
        assert function.barriers == facts["barriers"]
        assert function.static_smem_bytes == facts.get("static_smem_bytes", 0)
        assert function.local_bytes >= facts["stack_bytes"]


@ANY
def test_limits_stack_and_shared_memory(arch: str) -> None:
    functions = read(arch).functions
    assert functions["shared"].static_smem_bytes == 800
    assert functions["shared"].reserved_smem_bytes == (1024 if int(arch[3:].rstrip("a")) >= 90 else 0)
    assert functions["variables"].max_threads == 128
    assert functions["nothing"].max_threads is None
    assert functions["variables"].block is None
    assert functions["variables"].stack_bytes == 0
    if "shaped" in functions:
        assert (functions["shaped"].block, functions["shaped"].max_threads) == ((64, 2, 1), 128)
    if arch in {"sm_75", "sm_80", "sm_90"}:
        assert functions["recursive"].stack_bytes is None


@ANY
def test_variables_have_their_first_values(arch: str) -> None:
    cubin = read(arch)
    floats = {name: np.frombuffer(cubin.symbols[name].data, np.float32) for name in ("table", "weights", "scratch")}
    assert floats["table"].tolist() == [1, 2, 3, *[0] * 29]
    assert floats["weights"].tolist() == [0.5, 0.25, 0.125, 1]
    assert floats["scratch"].tolist() == [0] * 100
    assert cubin.symbols["counter"].data == struct.pack("<i", 42)
    assert cubin.symbols["bare"].data == bytes(32)
    assert cubin.bank(cubin.symbols["table"].section) == (3, "")
    assert cubin.bank(cubin.symbols["counter"].section) is None
    for variable in cubin.symbols.values():
        section = cubin.sections[variable.section]
        assert variable.offset + variable.size <= section.size
        if section.data:
            assert section.data[variable.offset : variable.offset + variable.size] == variable.data
    for function in cubin.functions.values():
        assert function.constants[3] == cubin.sections[".nv.constant3"].data


@ANY
def test_a_loader_learns_which_addresses_to_patch(arch: str) -> None:
    cubin = read(arch)
    addresses = {patch.symbol: patch for patch in cubin.relocations if patch.section == ".nv.constant4"}
    assert {"counter", "weights", "where", "scratch", "calls_table", "vprintf"} <= set(addresses)
    assert all(patch.kind == "R_CUDA_64" and patch.addend == 0 for patch in addresses.values())
    assert sorted(patch.offset for patch in addresses.values()) == list(range(0, 8 * len(addresses), 8))
    (pointer,) = [patch for patch in cubin.relocations if patch.section == ".nv.global.init"]
    assert (pointer.kind, pointer.symbol, pointer.addend) == ("R_CUDA_G64", "scratch", 12)
    assert pointer.offset == cubin.symbols["where"].offset
    # Every other address that code needs is in the code: the compiler gives each kernel its own copy of a callee.
    assert not [patch for patch in cubin.relocations if patch.section.startswith(".text.")]


@ANY
def test_called_functions_lie_within_their_kernels(arch: str) -> None:
    cubin = read(arch)
    assert set(cubin.labels) == {
        "$recursive$_Z6helperfi", "$recursive$_Z4deepi", "$indirect$_Z6helperfi", "$indirect$_Z5otherfi",
    }  # fmt: skip
    for name, (section, offset) in cubin.labels.items():
        assert section == f".text.{name.split('$')[1]}"
        assert 0 < offset < cubin.sections[section].size
        assert offset % 16 == 0
    # A function pointer is an offset into this kernel's own bank of addresses.
    bank = struct.unpack("<3q", cubin.functions["indirect"].constants[2])
    pointers = struct.unpack("<2q", cubin.symbols["calls_table"].data)
    targets = [bank[pointer // 8] for pointer in pointers]
    assert targets == [cubin.labels[f"$indirect${name}"][1] for name in ("_Z6helperfi", "_Z5otherfi")]


@ANY
def test_jump_tables_point_into_the_code(arch: str) -> None:
    function: CubinFunction = read(arch).functions["switches"]
    if 2 in function.constants:
        targets = struct.unpack(f"<{len(function.constants[2]) // 4}I", function.constants[2])
        assert len(set(targets)) > 3
        assert all(target < len(function.code) for target in targets)
    else:
        assert "BRX" not in compiled(SOURCE, "nothing", arch).texts["sass"].split(".text.switches:")[1]


def test_a_cubin_of_cuda_12() -> None:
    cubin = read_cubin((DATA / "cuda_12_9_sm_90a.cubin").read_bytes(), "old")
    assert cubin.arch == "sm_90a"
    function = cubin.functions["old"]
    assert (function.registers, function.barriers, function.max_threads) == (14, 1, 96)
    assert function.params == (Param(0, 8), Param(8, 2), Param(16, 8))
    assert (function.param_base, function.static_smem_bytes) == (0x210, 400)
    assert struct.unpack("<4f", cubin.symbols["table"].data) == (1, 2, 3, 4)
    (patch,) = cubin.relocations
    assert (patch.section, patch.kind, patch.symbol) == (".nv.constant4", "R_CUDA_64", "counter")


def test_what_is_no_cubin_is_refused_by_name() -> None:
    whole = compiled(SOURCE, "nothing").code
    with pytest.raises(UsageError, match=r"mine\.cubin: not an ELF file \(it begins with 2f 2f 20 63\)"):
        read_cubin(b"// code", "mine.cubin")
    with pytest.raises(UsageError, match=r"mine\.cubin: not an ELF file \(it begins with nothing\)"):
        read_cubin(b"", "mine.cubin")
    with pytest.raises(UsageError, match="not a 64-bit little-endian"):
        read_cubin(whole[:4] + b"\1" + whole[5:], "mine.cubin")
    with pytest.raises(UsageError, match=r"not a cubin: an ELF file for machine 62, not 190 \(CUDA\)"):
        read_cubin(whole[:18] + struct.pack("<H", 62) + whole[20:], "mine.cubin")
    with pytest.raises(UsageError, match=f"truncated: {len(whole) - 9000} bytes"):
        read_cubin(whole[:-9000], "mine.cubin")
    with pytest.raises(UsageError, match="truncated: 40 bytes"):
        read_cubin(whole[:40], "mine.cubin")


@pytest.mark.in_turns(20)
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_gives_a_cubin_or_a_named_error(data: st.DataObject) -> None:
    whole = compiled(SOURCE, "nothing").code
    broken = bytearray(whole[: data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))])
    headers = range(len(whole) - 64 * 90, len(whole))
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.one_of(st.integers(0, 64), st.sampled_from(headers), st.integers(0, len(whole) - 1)))
        if at < len(broken):
            broken[at] = data.draw(st.integers(0, 255))
    refusal = "probe: "
    try:
        assert read_cubin(bytes(broken), "probe").functions
    except UsageError as error:
        refusal = str(error)
    assert refusal.startswith("probe: ")
